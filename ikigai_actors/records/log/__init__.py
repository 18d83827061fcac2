"""An agent's log: table ``messages``, the inheritance of forks, and the meaning of a log.

    append, log_unit            what an agent writes about itself, under the fence of its host
    outside_events              the events of these writes for outside receivers
    chain                       the hash of each message and of all before it
    branches                    how many may be born in a branch of the tree
    log, log_cache, log_plan    a log in memory, all that are in use, and how far back each is held
    lineage, fork_point         the ancestors from which a log is inherited, and up to where
    history, boundaries, left   what a log means: clears, marks, summaries; where it may be cut; what is left
    words                       the messages that have words of a query
    heads, stored_history, diff   parts of logs, read from the database
    moments                     how far logs had come at a time, and what a timeline shows of them
    merges, merge_source        what one agent takes over of another one's history
    parking                     when a turn that only waits is a row, and who wakes it
    pruning                     what is deleted of the dead

Nothing in the middle of a log is ever changed or deleted: undo, rewind, clear, summaries and merges are appended.
"""
