"""Actors that share a few threads: inbox, dispatcher, futures, and the interfaces to threads and time.

Its modules:

    actor, inbox, dispatcher        an actor, its queue, and the few workers that run all of them
    futures, promise                answers, for threads and for asyncio; the value inside a future
    wait_registry, wait_graph       which agents wait for which others, and deadlocks among them
    service, timers, closing        parts that own a thread; values due at times; closing the parts of a system
    threads, clock                  the seam: all that a simulation swaps
    event_loop, loop_watchdog       the loop for other people's coroutines; finds code that blocks it
    spare_threads, tool_slots       threads for other people's code, and how many of it runs at once
    beside                          runs calls that wait for the database outside an event loop
    forked, garbage                 disables a system in a forked process; pauses the garbage collector
"""
