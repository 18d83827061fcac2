"""The system in a jar: each interleaving of transactions on PostgreSQL equals some order of them, that of the commits.

    scheduler   which session goes on next; who waits for a lock is asked of the server
    gates       stores whose transactions stop before every statement, and note the agents that they name to others
    world       the tree of agents, the units that are drawn, and what a run has left
    run         one interleaving, and its comparison with the same units one after another

The simulation runs one transaction at a time. That is true of PostgreSQL only as far as this holds.
"""
