"""Messages: their kinds, their data, and their references.

    messages            the kinds (``Kind``) and their traits
    forms               the data that each kind must have
    settings, outputs   the settings of an agent; the type of a typed turn's value
    replies             the form in which a reply is stored
    reply_data          reads a stored reply from the data of its message
    kept                a reply that a service keeps until it is read, as the log records it
    steered             the position of a steering message in a history
    skills, skills_beside   the skills that are pinned for an agent; the texts of skills that a summary keeps
    hook_commands, kinds   commands of a workspace that are pinned as hooks; pinned kinds of agents
    pieces              the received parts of replies in progress, for listeners in other processes
    blobs, blob_references   the bytes of attachments; references to them in messages
    acts                     acts of programs, which a later run recognises by their contents
    definitions              the definitions of tools to which questions refer
    principals          the outside principal who caused a message
    cards               how an agent presents itself to agents of other systems
    question_terms      which people a question asks, and what happens while nobody answers

All modules but ``pieces``, ``blobs`` and ``definitions`` work without agents and without the database.
"""
