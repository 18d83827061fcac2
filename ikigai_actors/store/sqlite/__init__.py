"""SQLite: the embedded database, one file.

Its modules:

    store, transaction      the adapter
    file, wal, host_lock    the file, its log, and the locks by which one host owns it
    watch                   wake-ups when another process has committed
    words                   the index of words: FTS5
    fork_gate, backup       a gate for os.fork, so that no thread is within SQLite; a consistent copy
"""
