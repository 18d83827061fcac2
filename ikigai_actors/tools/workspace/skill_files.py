"""Writes the files of skills to the disk of this host, where the commands of agents find them.

The files of a loaded skill are written before the agent's next command runs, once for all agents. The directory's name
is made of the skill's name and digest. Each file is compared with its digest, and a directory is moved to its place
when it is complete. So a directory has exactly the pinned files, or does not exist. The next host removes the
directories of a killed host.
"""

import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from ikigai_actors.tools.base import ReadBlobs
from ikigai_actors.tools.function import ToolError
from ikigai_actors.tools.skills.digests import directory_of


def lay_out_skills(place: Path, skills: Sequence[Mapping[str, Any]], read: ReadBlobs | None) -> None:
    """Write the files of skills below a directory, except those that exist. Blocks. Without a database nothing is done.

    Raises `ToolError` when the stored files of a skill are not those that were pinned.
    """
    if read is None:
        return
    for skill in skills:
        if not (there := place / directory_of(skill)).exists():
            _lay_out_one(place, there, skill, read)


def _lay_out_one(place: Path, there: Path, skill: Mapping[str, Any], read: ReadBlobs) -> None:
    made = place / f".{secrets.token_hex(8)}"
    blobs = read([entry["sha256"] for entry in skill["attached"]])
    files = [
        (PurePosixPath(entry["name"]), _checked(entry, skill, blobs), entry.get("mode")) for entry in skill["attached"]
    ]
    for path, data, mode in files:
        file = made / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o555 if mode == 0o755 else 0o444)
    try:
        made.rename(there)
    except OSError:  # another call has made it meanwhile
        if not there.is_dir():
            raise


def _checked(entry: Mapping[str, Any], skill: Mapping[str, Any], blobs: Mapping[str, bytes]) -> bytes:
    """Return the bytes of a skill's file. Raises `ToolError` if they differ, or the path leads out of the skill."""
    data, path = blobs.get(entry["sha256"]), PurePosixPath(entry["name"])
    if data is None or sha256(data).hexdigest() != entry["sha256"]:
        raise ToolError(f"{path} of skill {skill['name']} is not in the database as it was pinned.")
    if path.is_absolute() or ".." in path.parts:
        raise ToolError(f"Skill {skill['name']} names a file {str(path)!r}, which is not within it.")
    return data
