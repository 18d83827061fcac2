"""Writes new files that appear complete or not at all: written under another name, flushed, then renamed."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ikigai_actors.errors import BadInput


@contextlib.contextmanager
def new_file(target: Path, what: str) -> Iterator[IO[bytes]]:
    """Write a new file, which only its user may read, within a block; an error in the block leaves nothing.

    Args:
        target: the path of the file, where nothing may exist.
        what: the name of the file's content in errors, as ``an export``.

    Raises:
        BadInput: a file exists at the target, or cannot be written.
    """
    target = target.expanduser().absolute()
    refuse_to_overwrite(target, what)
    part = partial_path(target)
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        refuse_to_overwrite(target, what)
        part.rename(target)
        reach_the_disk(target.parent)
    except OSError as error:
        raise BadInput(f"The file {target} cannot be written: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def partial_path(target: Path) -> Path:
    """Return the name under which a file is written until it is complete."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")


def refuse_to_overwrite(target: Path, what: str) -> None:
    """Raise `BadInput` if a file exists at the target; ``what`` names the new file, as ``an export``."""
    if os.path.lexists(target):
        raise BadInput(f"There is something at {target} already, and {what} overwrites nothing. Name another file.")


def reach_the_disk(path: Path) -> None:
    """Flush a file or a directory to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
