"""One agent: its turn as a pure step function, the calls that it carries out itself, its actor and its effects.

Its modules:

    turn/                           decides what happens next; builtin_calls/: tools that the runtime itself carries out
    actor, messages, runtime        the actor, which commits the turn's steps; its messages; the parts of a system
    succession                      the interfaces of an actor to other actors and to the process table
    backlog                         the commands that the agent has yet to begin, and their order
    effects                         the effects that follow a commit, and those in flight
    batched                         requests through the batches of a service, for agents that allow a delay
    executor, jobs, service_gate    the execution of requests and tools; queues at the limits of a provider
    assembly, sizes, costs          requests to a model, their sizes and their costs
    toolbox, blob_cache             the tools of an agent; a cache of the bytes of attachments
    agent_log, log_loader, log_eviction   the log in memory; reading; eviction of the logs of idle agents
    waits, hooks                    waits for mail and for other agents; the hooks that apply, asked one after another
    remote_commands                 requests of other processes to the agent
    boot                            decides which agents get actors at the start, and which cannot come back
    subscriptions, instruments, statistics   events for subscribers; calls that measure work; counters
"""
