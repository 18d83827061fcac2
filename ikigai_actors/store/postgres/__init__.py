"""PostgreSQL.

Its modules:

    store, transaction, errors      the adapter; errors by SQLSTATE
    trips                           statements that travel together, in libpq's pipeline mode
    readers, connection_limits      its connections: for reads, and how many a host needs
    watch, bell, hints              how processes hear of commits: LISTEN, NOTIFY, and the agents that it names
"""
