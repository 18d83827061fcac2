"""Data that hosts and other processes exchange through the database.

    changes             which agents have changed since a look
    builds              which code a host runs, and whether their tools are alike
    offers              which hooks and programs a host has, and which host has those that turns wait for
    remote_commands     commands for agents of another process
    question_steps      what happens to questions that nobody has answered
    host_waits          which agents wait for which
    host_signs, liveness   heartbeats, and agents without any

All these data are for living processes. Readers ignore the data of a dead process without waiting.
"""
