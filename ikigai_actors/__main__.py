"""``python -m ikigai_actors``: the same as ``ikigai``."""

from ikigai_actors.shell.cli import main

if __name__ == "__main__":
    main()
