"""A register of the pages that this user's programs serve now, so that one page can link to another.

    with published("serve", "team.db", link):       while the pages are served
        ...
    link_to("serve", "team.db")                     the link; None when nobody serves such pages

Each link is in a file that only its user may read, because a link contains a token. If a program was killed, the next
program that searches for links removes its file.
"""

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from ikigai_actors.reach.databases import is_shared, kept_of_user

_Kind = Literal["serve", "observe"]
"""The command that serves a page."""

_PATIENCE = 0.2
"""Seconds to wait until a server on this machine accepts a connection."""


@contextlib.contextmanager
def published(kind: _Kind, database: str, link: str, folder: Path | None = None) -> Iterator[None]:
    """Let other programs of this user find a page for the length of a block; does nothing if no file can be made."""
    file = (folder or _folder()) / f"{kind}-{secrets.token_hex(4)}.json"
    if is_shared(database):  # one in memory no other program opens
        with contextlib.suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(made, "w", encoding="utf-8") as opened:
                json.dump({"database": database, "link": link}, opened)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink()


def link_to(kind: _Kind, database: str, folder: Path | None = None) -> str | None:
    """Return the link to the pages of a kind on a database; None if nobody serves them. Blocks to connect."""
    for file in sorted((folder or _folder()).glob(f"{kind}-*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            entry = json.loads(file.read_text(encoding="utf-8"))
            if entry["database"] == database and _is_served(link := str(entry["link"]), file):
                return link
    return None


def _is_served(link: str, file: Path) -> bool:
    """Return whether a server listens at a link; remove the link's file if none does."""
    place = urlsplit(link)
    try:
        socket.create_connection((place.hostname or "", place.port or 80), _PATIENCE).close()
    except ConnectionRefusedError:
        file.unlink()
        return False
    return True


def _folder() -> Path:
    return kept_of_user("pages")
