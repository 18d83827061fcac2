"""Life and death of agents: signals, deaths, restarts, groups and moves, and the mail about deaths.

    signals, deaths     signals and deaths, and all their effects in one transaction
    exit_mails          the mail that a death sends
    supervision, groups which agents are restarted, and together with which
    membership          groups by name, and monitors
    delivery            mail to an agent or a group, now or later
    moves               an agent that goes to another parent

The package `supervisors`, which is pure, decides; these modules write the decisions to the database.
"""
