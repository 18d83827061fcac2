"""The turn of an agent as a pure step function.

Its modules:

    machine, steps      what an agent does next, at each event; how a step is written
    state, events       what that is decided on, and what it decides; what can happen: commands and completions
    tool_steps, calls   the calls of a reply: which run, wait, are asked about; what a crash leaves of them
    ahead               several steps of a program's turn in one unit
    questions           which questions a step opens and closes
    builtin             how a call begins that the runtime carries out itself
    found               which tools the model has found, and which are always before it
    fork                a child, from the history up to a position
    kinds               with what the child of a kind begins
    record              calls that are answered from a record
    recorded_words      words that a trial is given again
    request             the history as a request to a model
    shown_attachments   which pictures and the like it has, and which by reference
    plan, compaction, elision   what a summary replaces, how one is made, what is shown by reference instead
    tokens              how many tokens a message has, by what replies have reported
    merging, ways       what is taken over of another agent's history; in which ways that is asked for
    service_waits       how long a service is waited for that refuses for the moment
    parts               how a history is read that is too long for its model
    skills              the catalogue of skills, which are loaded, and what a summary keeps of them
    typed               turns that must give a value
"""
