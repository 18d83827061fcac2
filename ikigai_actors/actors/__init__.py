"""Actors that share a few threads: inbox, dispatcher, futures, and the interfaces to threads and time.

Its modules:

    actor, inbox, dispatcher        an actor, its queue of messages, and the few worker threads that run all actors
    futures, promise                futures of answers, for threads and for asyncio; the value inside a future
    wait_registry, wait_graph       the registry of waits between agents; the graph in which it finds deadlocks
    service, timers, closing        parts that own a thread; values due at given times; the closing of such parts
    threads, clock                  the interfaces to threads and time, which a simulation replaces
    event_loop, loop_watchdog       the event loop for agents' coroutines; a watchdog that logs blocking code
    spare_threads, tool_slots       reusable threads for users' code; slots that limit how many plain tools run at once
    beside                          runs database calls on other threads, for callers on an event loop
    forked, garbage                 disables a system in a forked process; pauses the garbage collector
"""
