"""Messages: their kinds, their data, and their references.

    messages            the kinds (``Kind``) and their traits
    forms               the data that each kind must have
    settings, outputs   what an agent is set to; the type that a typed turn must return
    replies             a model's reply as data
    reply_data          the same, from the data alone
    kept                the reply that a service makes and keeps, as the log names it
    steered             where a word has entered a history
    skills, skills_beside   skills that are pinned for an agent, and those that a summary keeps
    hook_commands       commands of a workspace that are pinned as hooks
    pieces              replies on their way, for listeners in other processes
    blobs, blob_references   attachments, and what messages say of them
    acts                     acts of programs, and what they are named by
    definitions              definitions of tools that questions hold for
    principals          who asked from outside for what a message says
    cards               how an agent presents itself to agents of other systems
    question_terms      which people a question asks, and what happens while nobody answers

These modules know no agent and no database, but for ``pieces``, ``blobs`` and ``definitions``.
"""
