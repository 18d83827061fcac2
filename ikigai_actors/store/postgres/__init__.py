"""PostgreSQL: the store for databases on a server.

Its modules:

    store, transaction, errors      the adapter; errors by SQLSTATE
    trips                           statements that are sent together, in libpq's pipeline mode
    connecting, readers             the start and the end of a connection's use; a pool of connections for reads
    connection_limits, durability   the number of connections that a host needs; server settings that can lose commits
    words                           the index of words: tsvector and GIN
    watch, bell, hints              news of commits for other processes: LISTEN, NOTIFY, and the agents concerned
"""
