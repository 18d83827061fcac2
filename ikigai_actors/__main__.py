"""The program: ``ikigai``, and ``python -m ikigai_actors``.

Ctrl-C, and what is typed, are seen to before anything that takes long is imported.
"""

import os
import sys
from pathlib import Path

_ENDED_BY_CTRL_C = 130

try:
    from typing import NoReturn

    from ikigai_actors.shell import start
except KeyboardInterrupt:
    os._exit(_ENDED_BY_CTRL_C)


def main() -> NoReturn:
    """Run the command line, and end the process."""
    try:
        if os.getpid() == 1:
            from ikigai_actors.shell.init import run_in_child

            run_in_child()
        start.begin()
    except KeyboardInterrupt:
        os._exit(_ENDED_BY_CTRL_C)
    from ikigai_actors.shell.cli.main import main

    main()


if __name__ == "__main__":
    # As with ``ikigai``: nothing is imported from the current directory, which may be a workspace that agents write to.
    if sys.path[0] == str(Path.cwd()) != str(Path(__file__).parents[1]):
        del sys.path[0]
    main()
