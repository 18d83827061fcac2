"""Decisions about the life and death of agents: pure functions over frozen data, with the standard library alone.

Nothing here knows of models, databases or threads, holds state, or reads a clock; `ikigai_actors` carries out what is
decided here. An agent is a string, a time is milliseconds, and what is decided from can be read from the registry.

    tree          the order in which a tree of supervisors is walked
    causes        how an agent ended
    signals       signals, statuses, what each signal does to each status, whom a cascade hits
    orphans       what becomes of the agents below those that die
    children      restart types: is an agent that ended restarted or buried?
    strategies    who is stopped and started with a child that is restarted
    intensity     how many restarts are too many; how long to wait after one that failed; poison
    supervisor    ties the last three: what a supervisor does about each event of its children
"""
