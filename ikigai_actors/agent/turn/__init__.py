"""The turn of an agent as a pure step function.

Its modules:

    machine, steps             the decision of an agent at each event; drafts of messages, and the steps that write them
    state, events              an agent's state and effects; the events: commands and completions
    tool_steps, calls          the steps between two requests; the calls of a reply, and their progress after a crash
    hooked                     the requests and replies about which hooks are asked
    ahead                      several steps of a program's turn in one unit
    questions                  the questions that a step opens and closes
    builtin                    the start of a call that the runtime carries out itself
    found_tools                the tools that a request describes, and the tools that the model has found by a search
    fork, kinds                a child, from the history up to a position; the first messages of a child of a kind
    record, recorded_words     calls that are answered from a record; recorded steering messages that a trial gets again
    request                    the history as a request to a model
    kept                       replies that a service generates in the background and stores
    shown_attachments          the attachments that a model sees, and the texts in place of the other ones
    plan, compaction, elision  the messages that a summary replaces; the summary; references to long messages
    tokens                     estimates of a message's tokens, from the sizes that replies have reported
    merging, ways              merges: a message that quotes or summarises another agent's work; the ways to merge
    service_waits              waits for a service that refuses requests for the moment
    hook_waits                 waits of a turn for a process that has the hooks which a setting names
    parts                      the parts of another agent's long history, each as a request that fits the model's window
    skills                     the catalogue of skills, the loaded skills, and the texts of skills that a summary keeps
    typed                      turns that must end with a value of a type
"""
