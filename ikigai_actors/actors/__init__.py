"""Actors that need no thread of their own: inbox, dispatcher, futures, and the seam to threads and time.

Its modules:

    actor, inbox, dispatcher        an actor, its queue, and the few workers that run all of them
    futures, promise                answers, for threads and for asyncio; the value that one holds
    wait_registry, wait_graph       who waits for which others, and the circles in it
    service, timers, closing        parts that own a thread; what is to be done when; how parts are given back
    threads, clock                  the seam: all that a simulation swaps
    event_loop, loop_watchdog       where other people's coroutines run, and who holds that up
    spare_threads, tool_slots       threads for other people's code, and how many of it runs at once
    beside                          what may wait for the database, done beside an event loop
    forked, garbage                 what is left of a system in a forked process; the collector, held back
"""
