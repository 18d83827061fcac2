"""The shell: ``ikigai`` at a terminal, by a pipe, and its subcommands.

A program with a system of its own shows the system by `run`; see ``examples/supervised.py``.

    front_end   the shell over a running system, on the front end that fits
    cli/        the command line: the group ``ikigai``, its options and subcommands
    line/       line mode: reads a line, carries it out, and prints the result
    app/        the application on a whole screen
    web/        the application in a browser
    slash       verbs as slash commands; completion: the Tab key; walking: the verbs that only a shell has
    agent_lists the lists of /agents and ikigai agents; headings: help of groups; person_command: ``!git status``
    start       the first moments of the program; first_picture: its first screen; ground: a light or dark background
    init        the program as process 1 of a container

This package and the declarations of verbs import click.
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
