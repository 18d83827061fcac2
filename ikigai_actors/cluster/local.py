"""A Ray with one node on this machine, for people without a cluster. It runs until it is stopped.

Ray listens on all addresses of the machine, and runs whatever it is sent: so this one asks for a token, which only the
user can read. Its data are in one directory, with a file that has its process group and its address. After its end the
logs stay there until the next Ray ends, because they explain why hosts could not be started.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.errors import ClusterError

_RECONNECT = 3_600
"""Seconds for which Ray's processes, and so the hosts, outlive the death of the head's service; Ray itself takes 60."""

_MEMORY = 80_000_000
"""Bytes of memory for objects of Ray: about the least that Ray accepts, because hosts store no objects."""

_PATIENCE = 3.0
"""Seconds that the processes of Ray have to end; after that they are killed."""


class LocalRay(NamedTuple):
    """The Ray on this machine that this package has started."""

    group: int
    """The process group of its processes."""
    address: str


def environment() -> dict[str, str]:
    """Return the environment variables with which a process connects to the Ray of this machine."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(_home() / "token")}


def local_ray() -> LocalRay | None:
    """Return the Ray that this package runs on this machine; None if it is not running."""
    try:
        head = LocalRay(**json.loads((_home() / "head.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    return head if _lives(head.group) else None


def ensure_local_ray() -> LocalRay:
    """Return the Ray of this machine, and start it if it is not running. Raises `ClusterError`."""
    home = _home()
    try:
        home.mkdir(mode=0o700, exist_ok=True)
        if home.stat().st_uid != os.getuid():
            raise ClusterError(f"The directory {home} is another user's. Set TMPDIR to a directory of yours.")
        with _alone(home):
            return local_ray() or _begin(home)
    except OSError as error:
        raise ClusterError(f"No Ray can be started in {home}: {error.strerror}. Set TMPDIR to another.") from error


def end_local_ray() -> Path | None:
    """Stop the Ray of this machine, if it runs; return the directory of its logs, with the output of the hosts."""
    if (head := local_ray()) is not None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(head.group, number)
            if _ended(head.group):
                break
    kept = _home() / "logs"
    with contextlib.suppress(OSError):  # it has written none
        logs = (_home() / "ray" / "session_latest" / "logs").resolve(strict=True)
        shutil.rmtree(kept, ignore_errors=True)
        logs.rename(kept)
    for place in _home().glob("*"):
        if place != kept:
            shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(missing_ok=True)
    return kept if kept.is_dir() else None


def _home() -> Path:
    return Path(tempfile.gettempdir()) / f"ikigai-ray-{os.getuid()}"


@contextlib.contextmanager
def _alone(home: Path) -> Iterator[None]:
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _begin(home: Path) -> LocalRay:
    token = home / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32), encoding="utf-8")
    port = _free_port()
    with (home / "ray.log").open("wb") as log:
        starting = subprocess.Popen(
            [
                *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", f"--port={port}"),
                *("--num-cpus=1", "--include-dashboard=false", f"--object-store-memory={_MEMORY}"),
                *(f"--temp-dir={home / 'ray'}", "--disable-usage-stats"),  # which Ray opens to everybody
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment(), "RAY_gcs_rpc_server_reconnect_timeout_s": str(_RECONNECT)},
            start_new_session=True,
        )
        status = starting.wait()
    begun = LocalRay(starting.pid, f"127.0.0.1:{port}")
    if status:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(begun.group, signal.SIGKILL)
        lines = (home / "ray.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise ClusterError(f"Ray could not be started: {lines[-1] if lines else f'exit status {status}'}")
    (home / "head.json").write_text(json.dumps(begun._asdict()), encoding="utf-8")
    return begun


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("", 0))
        port: int = asked.getsockname()[1]
        return port


def _lives(group: int) -> bool:
    """Return whether a process group has processes of Ray. Another group may have got its number since."""
    return any(str(_home()) in words for words in _commands(group))


def _commands(group: int) -> Iterator[str]:
    """Yield the command lines of a process group, read from /proc, because container images often lack ``ps``."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state = (process / "stat").read_text(encoding="utf-8", errors="replace")
            if state.rpartition(")")[2].split()[2] == str(group):
                yield (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")


def _ended(group: int) -> bool:
    """Wait a while for the end of a process group; return whether all its processes have ended."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if not _lives(group):
            return True
        time.sleep(0.1)  # nothing reports the end of a process that is not a child
    return False
