"""The token of a server in a file that only its user may read, so that programs know it across restarts."""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from ikigai_actors.errors import BadInput


def token_in(file: Path) -> str:
    """Return the token in a file. If the file is missing, make it, with a new token. Raises `BadInput`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        made, name = tempfile.mkstemp(dir=file.parent)  # which only its user may read
        os.write(made, f"{secrets.token_urlsafe(32)}\n".encode())
        os.close(made)
        with suppress(FileExistsError):  # another process was faster
            os.link(name, file)  # whole or not at all: a kill leaves no empty token
        Path(name).unlink()
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise BadInput(
            f"The token in {file} cannot be read: {error}. Delete the file, and a new one is made."
        ) from error
    if len(token) < 43 or file.stat().st_mode & 0o077:
        raise BadInput(
            f"The token in {file} is too short, or others may read it. Delete the file, and a new one is made."
        )
    return token
