"""A system in a simulated world: threads, time, the database and its faults.

Its modules:

    world, process, hosts       a simulation, the processes in it, and the hosts that they are of
    scheduler, schedule         what comes next; the choices of a run, by which it is run again
    threads, event_loop, clock  the seam to threads and time, simulated
    store, changes, faults      the database, what transactions have changed, what goes wrong there and elsewhere
    remote, messages_api        models and tools outside; what a model's service would refuse
    receiver                    the receivers outside that get events
    ownership                   who may write, among several hosts
    trace                       the story of a run
"""
