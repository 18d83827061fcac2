"""Remote agents, which other processes run: commands to them are rows, and the database shows what they do.

Its modules:

    agents              sends commands to remote agents, and awaits answers; turn: follows a turn by its commits
    prompted            the end of a prompt's turn, found in the rows
    following, follower the loop that follows the database; reads the commits of other processes
    reply_feed          new pieces of replies in progress
    publisher, tallies  publishes events of remote agents to subscribers; counts their turns and tokens
    lateness            sentences that explain why a remote agent has not answered in time
    client              reads and writes the database of remote agents on the caller's thread, without a loop
"""
