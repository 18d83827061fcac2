"""Agents that other processes run: asked by rows, and followed through the database.

Its modules:

    agents              sends commands to them, and awaits answers; turn: a turn, followed by its commits
    prompted            the turn of a prompt, by the rows
    following, follower the one loop that follows the database; what it reads
    reply_feed          new pieces of replies in progress
    publisher, tallies  passes their events to subscribers; counts their work
    lateness            why such an agent has not answered in time
    client              the same for one operation of a command, without a loop
"""
