"""A simulated world for a system: its threads, time, database and faults.

Its modules:

    world, process, hosts       a simulation, the processes in it, and the hosts that they are of
    scheduler, schedule         the choice of the next step; the choices of a run, which replay it
    threads, event_loop, clock  the seam to threads and time, simulated
    store, changes, faults      the database, what transactions have changed, what goes wrong there and elsewhere
    remote, messages_api        models and tools outside; what a model's service would refuse
    receiver                    the receivers outside that get events
    ownership                   who may write, among several hosts
    trace                       the story of a run
"""
