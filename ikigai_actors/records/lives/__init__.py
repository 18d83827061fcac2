"""Life and death of agents: signals, deaths, restarts, groups and moves, and the mail about deaths.

    signals, deaths     signals and deaths, and all their effects in one transaction
    exit_mails          the mail about deaths
    supervision, groups restarts of agents; groups of siblings that are restarted together
    membership          groups by name, and monitors
    delivery            mail to an agent or a group, now or later
    moves               moves of a branch of the tree to another host

The package `supervisors`, which is pure, decides; these modules write the decisions to the database.
"""
