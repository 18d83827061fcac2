"""Agents that other processes run: asked by rows, and followed through the database.

Its modules:

    agents              what is asked of them, and awaited; turn: a turn, by what it commits
    prompted            the turn of a prompt, by the rows
    following, follower the one loop that follows the database; what it reads
    reply_feed          what is new of replies on their way
    publisher, tallies  what subscribers hear of them; what they have done
    lateness            why such an agent has not answered in time
    client              the same for one operation of a command, without a loop
"""
