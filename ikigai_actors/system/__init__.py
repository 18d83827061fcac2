"""A running system: opening and closing it, handles of its agents, and its host with the supervision of agents.

Its modules:

    system, options, platform       what a program opens, its parts in the order of their start; the checked arguments
    attached, aio                   the same for a process that runs no agents, and for asyncio programs
    directory                       finds agents, and the actor or remote agent that carries out a command
    handles/, context               handles of agents; counts and settings of an agent's history
    receipts                        futures of the positions of steering messages
    event_feed, reply_stream        events, and the pieces of a turn, as iterators
    lifecycle, approvals            signals and births; calls that wait for a person
    questions                       questions that wait for a person, and their answers
    endpoints                       events from outside, as prompts, mail and children
    subscriptions, secrets          events out, to receivers outside; secrets by reference
    kept_secrets                    secrets in rows: references, and sealed ones
    host_events                     events about hosts that come or end
    json_log                        log lines as JSON
    accounts, guarded_http          accounts at remote MCP servers; HTTP to addresses that others have named
    notebook                        agents as a tree in HTML
    lateness                        why an agent has not answered in time
    skills                          skills on the disk, and how they are pinned
    kinds, kind_files               kinds of agents: how they are pinned, and what their files say
    hook_files                      commands of a workspace as hooks: what its file says, and how they are pinned
    teams                           a team as a file
    agents_tool, configuration      the tool that lists agents; where ``ikigai.toml`` is
    stored_trees, stored_remotes    what the database says of files that fork, and of remote servers, for toolsets
    host/                           runs agents, supervises them, shares them
    remote/                         asks and follows agents that other processes run
"""
