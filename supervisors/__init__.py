"""Decisions about the life and death of agents: pure functions over frozen data, with the standard library alone.

Nothing here knows of models, databases or threads, holds state, or reads a clock; `ikigai_actors` carries the decisions
out. An agent is a string, a time is milliseconds, and all that a decision needs can be read from the registry.

    tree          the order in which a tree of supervisors is walked
    causes        how an agent ended
    signals       signals, statuses, what each signal does to each status, which agents a cascade hits
    orphans       what happens to the agents below those that die
    children      restart types: is an agent that ended restarted or buried?
    strategies    which siblings are stopped and started with a child that is restarted
    intensity     how many restarts are too many; how long to wait after one that failed; poison
    supervisor    ties the last three: what a supervisor does about each event of its children
"""
