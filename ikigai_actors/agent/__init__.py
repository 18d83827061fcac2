"""One agent: its turn as a pure step function, the calls that it carries out itself, its actor and its effects.

Its modules:

    turn/                           decides what happens next; builtin_calls/: what the runtime does for a model
    actor, messages, runtime        feeds the turn and commits its steps; the actor's messages; its environment
    succession                      the interfaces of an actor to other actors and to the process table
    backlog                         the commands that it has yet to begin, and their order
    effects                         the effects that follow a commit, and those in flight
    batched                         lets a request wait for a batch of its service
    executor, jobs, service_gate    run requests to models and tools; hold requests back to a provider's limits
    assembly, sizes, costs          requests to a model, their sizes and their costs
    toolbox, blob_cache             the tools of an agent; the bytes of its pictures
    agent_log, log_loader, log_eviction   its log in memory: there while it is needed, read late, dropped when idle
    waits                           waits for mail and for other agents
    remote_commands                 what other processes ask it to do
    boot                            which agents come back, and with which turns
    subscriptions, instruments, statistics   events, hooks and counters for other code
"""
