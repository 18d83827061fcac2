"""The notes of hosts and other processes for one another in the database.

    changes             which agents have changed since a look
    builds              which code a host runs, and whether their tools are alike
    remote_commands     commands for agents of another process
    question_steps      what happens to questions that nobody has answered
    host_waits          which agents wait for which
    host_signs, liveness   heartbeats, and agents without any

All of it is for the living: what a dead process has left costs its readers a look, and no wait.
"""
