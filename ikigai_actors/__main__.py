"""The program ``ikigai``, which also runs as ``python -m ikigai_actors``.

The program sets up its handling of Ctrl-C and of typed keys before it imports anything that takes long.
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
