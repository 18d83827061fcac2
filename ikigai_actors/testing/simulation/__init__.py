"""A simulated world for a system: its threads, time, database and faults.

Its modules:

    world, process, hosts       a simulation; its processes; its hosts, which are processes that start and end
    scheduler, schedule         the choice of the next step; the choices of a run, which replay it
    threads, event_loop, clock  simulated threads, a simulated event loop and clock
    store, changes, faults      the database; the changes of transactions; the faults that may occur
    remote, messages_api        models and tools outside; the rules by which the Messages API rejects a request
    receiver                    the receiver outside that gets events
    ownership                   checks after every commit which host owns which agents
    trace                       the story of a run
"""
