"""Hosts: the processes that run the agents of a database, and how several hosts share the agents.

Its modules:

    host            one process that runs agents: its lease or lock, held and released
    rows            the rows of hosts: table ``hosts``
    machine         tests whether a process of this machine has ended
    peers           the other hosts, of which this host ends dead ones; membership: the decision that a host is dead
    shards          sets of agents that live on one host together; placement: how many shards a host takes, and gives
"""
