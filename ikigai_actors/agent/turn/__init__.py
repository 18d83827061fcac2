"""The turn of an agent as a pure step function.

Its modules:

    machine, steps             the decision of an agent at each event; how a step is written
    state, events              an agent's state and effects; the events: commands and completions
    tool_steps, calls          the calls of a reply: which run, wait, are asked about; what a crash leaves of them
    hooked                     the requests and replies about which hooks are asked
    ahead                      several steps of a program's turn in one unit
    questions                  which questions a step opens and closes
    builtin                    how a call begins that the runtime carries out itself
    found_tools                which tools the model has found, and which it is always offered
    fork, kinds                a child, from the history up to a position; how the child of a kind begins
    record, recorded_words     calls that are answered from a record; steering messages that a trial gets from it
    request                    the history as a request to a model
    kept                       replies that their service makes and keeps
    shown_attachments          which attachments the request has, and which are replaced by a text
    plan, compaction, elision  what a summary replaces, how a summary is made, what is shown by reference instead
    tokens                     how many tokens a message has, by what replies have reported
    merging, ways              what a merge takes over from another agent's history; the ways to merge
    service_waits              how long to wait for a service that refuses requests for the moment
    hook_waits                 how a turn waits for a process that has the hooks which its setting names
    parts                      how a history is read that is too long for its model
    skills                     the catalogue of skills, which are loaded, and what a summary keeps of them
    typed                      turns that must give a value
"""
