"""The tables of the database, by subject: each folder reads and writes its own tables. No two folders need each other.

    agents/      the registry of agents: names, parents, states; rules, labels, file trees
    messages/    the kinds of messages, their data, and their references
    log/         the log of an agent, and the history that it inherits; proof/: checks of their hashes
    mail/        mailboxes, timers; questions/ to people; arrivals/ and outbox/: events from and to the outside
    lives/       signals, deaths, restarts, groups, moves
    hosts/       data that hosts and other processes exchange
    budgets/     limits on what agents may spend
    documents, spending, figures   documents by path and version; tokens spent by all agents; the numbers of all rows
    guests       logs of other libraries: their sessions and threads
    batches      requests that wait for a batch of their service
    once         calls that are done once under a key
    mcp_listings  tools that remote MCP servers have listed
    accounts, sealed  credentials at remote MCP servers; bytes that only the operator's key opens
    uploads      files that principals have given, before a message refers to them
    tokens       secrets by which principals get access through the network
    secret_references   references to secrets, in rows that do not have the secrets themselves
    transfer/    export and import of branches of agents, as files
    fsck/        checks of the invariants of a database

Only the module of a subject runs the statements of that subject.
"""
