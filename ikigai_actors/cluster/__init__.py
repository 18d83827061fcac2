"""Hosts on a cluster of Ray, which places them and starts them again.

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
    shim.py         the actor of Ray
    child.py        the process of a host, and what its parent does about it
    connection.py   the one place that imports Ray, when it is first needed
    local.py        a Ray on this machine, for those who have none
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
