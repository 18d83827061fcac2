"""The program: ``ikigai``, and ``python -m ikigai_actors``.

Ctrl-C, and what is typed, are seen to before anything that takes long is imported.
"""

import os

_ENDED_BY_CTRL_C = 130

try:
    from typing import NoReturn

    from ikigai_actors.shell import start
except KeyboardInterrupt:
    os._exit(_ENDED_BY_CTRL_C)


def main() -> NoReturn:
    """Run the command line, and end the process."""
    try:
        start.begin()
    except KeyboardInterrupt:
        os._exit(_ENDED_BY_CTRL_C)
    from ikigai_actors.shell.cli.main import main

    main()


if __name__ == "__main__":
    main()
