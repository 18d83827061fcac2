"""Hooks: functions or commands that look at calls before and after they run.

Its modules:

    verdict          the input and the output of a hook
    function         Python functions as hooks, and how one is run
    command_hooks    commands as hooks, as the settings of Claude Code name them
"""
