"""Mailboxes: table ``mail``, and mail that is delivered later.

    mail        sending, reading, and the unread
    prompts     prompts on their way
    asked       requests of programs to other agents
    words       steering messages
    timers      mail that comes later
    schedules   when that is due (pure)

A mail is delivered exactly once: the unit that appends it to the log marks it as read.
"""
