"""Data that hosts and other processes exchange through the database.

    changes             the changes of the registry since a version
    builds              the code that each host runs, and whether the tools of hosts are equal
    offers              the hooks and programs of each host, and a host that has those for which a turn waits
    remote_commands     commands of other processes to an agent, as rows with their answers
    question_steps      reminders, escalations and defaults of unanswered questions
    host_waits          the waits of agents that a host publishes
    host_signs, liveness   the heartbeats that a host publishes; agents without a heartbeat

All these data are for living processes. Readers ignore the data of a dead process without waiting.
"""
