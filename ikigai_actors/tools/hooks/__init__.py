"""Hooks: functions or commands that look at calls before and after they run.

Its modules:

    verdict          the input and the output of a hook
    function         Python functions as hooks
    command_hooks    commands as hooks, in the form of Claude Code's settings
"""
