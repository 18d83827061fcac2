"""The turn of an agent as a pure step function.

Its modules:

    machine, steps      what an agent does next, at each event; how a step is written state, events       an agent's
    state and effects; the events: commands and completions tool_steps, calls   the calls of a reply: which run, wait,
    are asked about; what a crash leaves of them ahead               several steps of a program's turn in one unit
    questions           which questions a step opens and closes builtin             how a call begins that the runtime
    carries out itself found               which tools the model has found, and which it is always offered fork
    a child, from the history up to a position kinds               with what the child of a kind begins record
    calls that are answered from a record recorded_words      steering messages that a trial gets from its record
    request             the history as a request to a model shown_attachments   which attachments the request has, and
    which are replaced by a text plan, compaction, elision   what a summary replaces, how one is made, what is shown by
    reference instead tokens              how many tokens a message has, by what replies have reported merging, ways
    what a merge takes over from another agent's history; the ways to merge service_waits       how long to wait for a
    service that refuses requests for the moment parts               how a history is read that is too long for its
    model skills              the catalogue of skills, which are loaded, and what a summary keeps of them typed
    turns that must give a value
"""
