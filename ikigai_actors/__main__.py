"""The program: ``ikigai``, and ``python -m ikigai_actors``.

Ctrl-C, and what is typed, are seen to before anything that takes long is imported.
"""

from typing import NoReturn

from ikigai_actors.shell.cli import start


def main() -> NoReturn:
    """Run the command line, and end the process."""
    start.begin()
    from ikigai_actors.shell.cli.main import main

    main()


if __name__ == "__main__":
    main()
