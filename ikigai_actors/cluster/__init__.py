"""Hosts on a cluster of Ray, which places hosts and restarts them.

    from ikigai_actors import cluster

    fleet = cluster.start("postgresql:///team", hosts=3, app="shop.agents:app")
    fleet.hosts()
    fleet.scale(5)
    fleet.drain("host-2")
    fleet.stop()

A host is the process ``ikigai host``, as without Ray: it is connected to PostgreSQL alone. For each host Ray runs a
small actor, the shim, which starts the host as its child. So PostgreSQL decides which host owns which agents, and Ray
decides only whether an ended host is started again. A program needs no connection to Ray to use the agents:
`ActorSystem.attach`.

    fleet.py        starts, counts and ends the hosts
    shim.py         the actor of Ray that runs one host as its child
    child.py        a host as a child process: it ends with its parent, and is killed if it hangs
    connection.py   connections to Ray; only this module imports Ray, at its first use
    local.py        a Ray with one node on this machine, for people without a cluster
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
