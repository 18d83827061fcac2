"""Hooks: rules that compute. A program, or a command of a person, looks at calls before and after they run.

Its modules:

    verdict          what a hook says, and what it is shown
    function         Python functions as hooks, and how one is run
    command_hooks    commands as hooks, as the settings of Claude Code name them
"""
