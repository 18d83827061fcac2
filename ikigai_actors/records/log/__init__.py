"""An agent's log: table ``messages``, the inheritance of forks, and the meaning of a log.

    append, log_unit            the writes of an agent to its log, fenced by its host; the data of one write
    outside_events              the events for outside receivers that follow from a write
    chain                       the hash of each message and of all before it
    branches                    the limit on the number of agents in a branch of the tree
    log, log_cache, log_plan    a log in memory; the logs in use; the parts of logs that a history needs in memory
    lineage, fork_point         the ancestors that store an agent's history; the settings at an earlier position
    history, boundaries, left   the view of a history; the positions for cuts; the budget left after births
    words                       the search for messages that contain the words of a query
    heads, stored_history, diff   the latest messages of logs; a whole history; the differences of two histories
    moments                     the positions that logs had reached at a time, and the messages for a timeline
    merges, merge_source        which agent has merged which other one; the data of an agent to be merged
    parking                     parking: a program that only waits becomes a row until its wait is over
    pruning                     the deletion of messages and mail of agents that died long ago

Nothing in the middle of a log is ever changed or deleted: undo, rewind, clear, summaries and merges are appended.
"""
