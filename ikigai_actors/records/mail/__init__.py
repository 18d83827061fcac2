"""Mailboxes: table ``mail``, and what is delivered later.

    mail        sending, reading, and the unread
    prompts     prompts on their way
    asked       what programs have asked of other agents
    words       words for agents within their turns
    timers      mail that comes later
    schedules   when that is due (pure)

A mail is delivered exactly once: the unit that appends it to the log marks it as read.
"""
