"""Directories nested deeper than any path reaches."""

import os
from pathlib import Path


def nest(place: Path, levels: int) -> None:
    """Make a directory with this many levels of directories in it."""
    place.mkdir(parents=True)
    held = os.open(place, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=held)
        below = os.open("d", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = below
    os.close(held)
