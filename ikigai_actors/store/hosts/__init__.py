"""Hosts: the processes that run the agents of a database, and how several hosts share the agents.

Its modules:

    host            one process: its lease or lock, kept and given back
    rows            hosts as table ``hosts`` has them
    machine         whether a process of this machine has ended
    peers           one host looks at the others, and ends the dead; membership: which are dead
    shards          the sets of agents that live together; placement: how many a host takes, and which it gives
"""
