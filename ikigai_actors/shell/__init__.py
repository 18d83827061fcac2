"""The shell: ``ikigai`` at a terminal, by a pipe, and its subcommands.

A program with a system of its own shows the system by `run`; see ``examples/supervised.py``.

    front_end   the shell over a running system, on the front end that fits
    cli/        the command line: the group ``ikigai``, its options and subcommands
    line/       line mode: reads lines, does them one after another, and prints
    app/        the application on a whole screen
    web/        the application in a browser
    slash       verbs as a person types them; completion, what Tab adds; walking, the verbs of a terminal itself
    agent_lists the lists of /agents and ikigai agents
    start       the first moments of the program; first_picture, what they show; ground, whether it is light
    init        the program as process 1 of a container

This package and the declarations of verbs import click.
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
