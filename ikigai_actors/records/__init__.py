"""The tables of the database, by subject: each folder reads and writes its own tables. No two folders need each other.

    agents/      who exists
    messages/    what a message is
    log/         what an agent has lived through
    mail/        mailboxes, timers
    lives/       signals, deaths, restarts, groups, moves
    hosts/       what processes leave for one another
    budgets/     what may be spent
    documents, spending, figures   documents by path and version; what was spent; how much there is of everything
    guests       what other libraries keep here
    batches      requests that wait for a batch of their service
    once         calls that are done once under a key
    mcp_listings  tools that remote MCP servers have listed
    accounts, sealed  credentials at remote MCP servers; what only the operator's key opens
    uploads      files that principals have given, before a message refers to them
    tokens       secrets by which principals come in through the network
    secret_references   names of secrets that no row has
    transfer/    branches of agents as files, to other databases
    fsck/        what must hold of all that

Only the module of a subject runs the statements of that subject.
"""
