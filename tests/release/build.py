"""The files of a release, built twice in unlike surroundings: another folder, umask, time zone and locale."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

UNLIKE = (
    {"TZ": "UTC", "LC_ALL": "C"},
    {"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "7"},
)
"""The surroundings of either build."""

UMASKS = (0o022, 0o077)


def build(source: Path, target: Path, isolated: bool = True) -> list[Path]:
    """Build the commit that ``source`` has checked out, twice; put its files into ``target`` when they are equal.

    Raises `SystemExit` when they are not.
    """
    date = output(["git", "-C", str(source), "log", "-1", "--format=%ct"])
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / "one", Path(folder) / "an" / "other" / "place"]
        for place, surroundings, mask in zip(places, UNLIKE, UMASKS, strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-m", "build", *([] if isolated else ["--no-isolation"]), "."]
            environment = {**os.environ, **surroundings, "SOURCE_DATE_EPOCH": date}
            subprocess.run(["git", "clone", "-q", str(source), str(place)], check=True, umask=mask)
            subprocess.run(command, check=True, cwd=place, env=environment, umask=mask, capture_output=True)
        first, second = (digests(place / "dist") for place in places)
        if first != second:
            raise SystemExit(f"Two builds of one commit differ:\n{first}\n{second}")
        target.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(places[0] / "dist" / name, target)) for name in sorted(first)]


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a folder, by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def output(command: list[str]) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
