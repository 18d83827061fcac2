"""Mailboxes: table ``mail``, and mail that is delivered later.

    mail        mail between agents: sending, reading, unread mail
    prompts     prompts as mail, until their agents begin with them
    asked       requests of programs to other agents
    words       steering messages
    timers      mail and prompts that agents get later, once or repeatedly
    schedules   the times at which timers are due (pure)

A mail is delivered exactly once: the unit that appends it to the log marks it as read.
"""
