"""PostgreSQL: the store for databases on a server.

Its modules:

    store, transaction, errors      the adapter; errors by SQLSTATE
    trips                           statements that travel together, in libpq's pipeline mode
    connecting, readers             its connections: how their use begins and ends, and those for reads
    connection_limits, durability   how many a host needs; by which settings a server may lose commits
    words                           the index of words, by tsvector and GIN
    watch, bell, hints              how processes hear of commits: LISTEN, NOTIFY, and the agents that it names
"""
