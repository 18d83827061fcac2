"""SQLite: the embedded database, one file.

Its modules:

    store, transaction      the adapter
    file, wal, host_lock    the file, its log, and the locks by which one host owns it
    watch                   how a process hears of another one's commits
    words                   the index of words, by FTS5
    fork_gate, backup       what os.fork must wait for; a consistent copy
"""
