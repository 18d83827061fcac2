"""A running system: opening and closing it, handles of its agents, and its host with the supervision of agents.

Its modules:

    system, options, platform       the actor system; its checked arguments; its threads, time, randomness and database
    attached, aio                   the system in a process that runs no agents; the system for asyncio programs
    directory                       finds agents, and sends each command to the process that carries it out
    handles/, context               handles of agents; counts and settings of an agent's history
    receipts                        futures of the positions of steering messages
    event_feed, reply_stream        events, and the pieces of a turn, as iterators
    lifecycle, births, approvals    commands on lives; children from any histories; calls that wait for a person
    questions                       questions that wait for a person, and their answers
    endpoints                       events from outside, which become prompts, mail and children
    subscriptions, secrets          receivers outside, which get events; secrets by reference
    kept_secrets                    secrets in rows: references, and sealed ones
    host_events                     events about hosts that come or end
    json_log                        log lines as JSON
    accounts, guarded_http          accounts at remote MCP servers; HTTP to addresses that others have named
    notebook                        the HTML of a tree of agents, for notebooks
    lateness                        sentences that explain why an agent has not answered in time
    skills                          skills: finds them on the disk, and pins approved ones
    kinds, kind_files               kinds of agents: finds and pins them; the files that define them
    hook_files                      commands of a workspace as hooks: finds and pins them
    teams                           team files: the agents of a team, each with its kind, budget and first prompt
    agents_tool, configuration      the tool that lists agents; where ``ikigai.toml`` is
    stored_trees, stored_remotes    stored rows for toolsets: file trees of agents; remote servers
    host/                           runs agents, supervises them, shares them
    remote/                         commands to agents that other processes run, and their commits
"""
