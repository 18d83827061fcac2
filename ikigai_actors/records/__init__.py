"""What the database says: one module for each of its tables, and fsck.

Its modules:

    registry, identity, changes     who exists (table ``agents``), names, what has changed lately
    append, log_unit                what an agent writes about itself, under the fence of its host
    messages, forms, replies        the kinds of messages (table ``messages``), and the data that each must have
    blobs, blob_references          attachments, and what messages say of them
    log, log_cache, lineage         a log in memory, all that are in use, and the ancestors from whom it inherits
    log_plan                        how far back each of them must be held
    history, boundaries, fork_point what a log means: clears, marks, summaries; where it may be cut
    scrollback, heads, stored_history, diff   parts of logs, read from the database
    merges, merge_source            what one agent takes over of another one's history
    settings, outputs               what an agent is set to; what a typed turn must give
    mail, timers, schedules         mailboxes; mail that comes later, and when that is due
    documents                       documents, by path and version
    signals, deaths, exit_mails     what ends agents, what that leads to, who is told of it
    membership                      groups by name; who else hears of a death
    liveness, host_signs            signs of life, and who is told of an agent without any; what hosts publish of them
    supervision, groups             who restarts whom, and together with whom
    pieces                          replies on their way, for listeners in other processes
    moves, remote_commands, host_waits     what goes from host to host: agents, commands, who waits for whom
    budgets/, spending, left        what may be spent, what was, what models are told of it
    pruning, figures                what is deleted of the dead; how much there is of everything
    transfer/                       branches of agents as files, to other databases
    fsck/                           what must hold of all that
"""
