"""Scenes for a fence: a workspace among things that a program must not reach, and ways to run programs in it."""

import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.base import HostPaths
from ikigai_actors.tools.fence.enclosure import Enclosure, open_enclosure, variables_of
from ikigai_actors.tools.fence.grounds import grounds, interpreter, names_in, real
from ikigai_actors.tools.fence.launch import SOURCE, FencedStart, compiled
from ikigai_actors.tools.fence.policy import Fence, reach_of
from ikigai_actors.tools.fence.private import PrivateDirectories
from ikigai_actors.tools.fence.tiers import Candidate, candidates, kernel

ESCAPES = Path(__file__).with_name("escapes.py")

ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
"""What programs in scenes get."""

SECONDS = 60.0
"""After which a test gives up."""

VICTIM = r"""
import ctypes, json, os, pty, select, socket, sys
place = sys.argv[1]
os.chdir(place)
held = ctypes.create_string_buffer(b"secret", 64)
descriptor = os.open("secret", os.O_RDONLY)
made = [socket.socket(kind) for kind in (socket.AF_UNIX, socket.AF_UNIX, socket.AF_INET)]
made.append(socket.socket(type=socket.SOCK_DGRAM))
addresses = [f"{place}/socket", f"\0ikigai-{os.getpid()}", ("127.0.0.1", 0), ("127.0.0.1", 0)]
for one, address in zip(made, addresses):
    one.bind(address)
for one in made[:3]:
    one.listen()
ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
ear.bind(f"{place}/datagrams")
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
key = 0x5EC0000 + os.getpid()
segment = libc.shmget(key, 4096, 0o1600)
ctypes.memmove(libc.shmat(segment, None, 0), b"secret", 6)
queue = f"/ikigai-{os.getpid()}"
ctypes.CDLL("librt.so.1").mq_open(queue.encode(), os.O_RDWR | os.O_CREAT, 0o600, None)
with open(f"/dev/shm{queue}", "w") as file:
    file.write("secret")
master, slave = pty.openpty()
libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())  # as a person's programs have none
print(json.dumps(dict(
    victim=os.getpid(), address=ctypes.addressof(held), descriptor=descriptor, socket=addresses[0],
    datagrams=f"{place}/datagrams",
    abstract=addresses[1][1:], tcp=made[2].getsockname()[1], udp=made[3].getsockname()[1], segment=segment,
    segment_key=key, queue=queue, shared=f"/dev/shm{queue}", terminal=os.ttyname(slave),
)), flush=True)
kept = []
try:
    while True:
        for one in select.select([sys.stdin, *made, *kept], [], [])[0]:
            if one is sys.stdin:
                sys.exit()
            if one is made[3]:
                one.sendto(*one.recvfrom(16))
            elif one in made:
                kept.append(one.accept()[0])
            else:
                said = one.recv(16)
                kept.remove(one) if not said else one.send(said)
finally:
    libc.shmctl(segment, 0, None)
    ctypes.CDLL("librt.so.1").mq_unlink(queue.encode())
    os.unlink(f"/dev/shm{queue}")
"""
"""A program of the person's, with what a process can hold."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A workspace, and what is outside of it."""

    work: Path
    outside: Path
    home: Path
    database: Path
    targets: dict[str, str | int]

    @property
    def paths(self) -> HostPaths:
        """The host's own files."""
        return HostPaths(self.outside / "state", (self.database,))


@contextmanager
def scene(place: Path, work: Path | None = None) -> Iterator[Scene]:
    """A scene beneath a directory, until the block ends; the workspace may lie elsewhere."""
    work, outside, home = work or place / "work", place / "outside", place / "person"
    for each in (work / ".git" / "hooks", work / ".vscode", outside, home / ".ssh"):
        each.mkdir(parents=True, exist_ok=True)
    files = ("secret", "beside", "victim_file", "to_rename", "to_remove", "d.db")
    for name in files:
        (outside / name).write_text("s3cr3t")
    (home / ".ssh" / "id").write_text("k3y")
    (work / ".git" / "config").write_text("[core]\n")
    in_tmp = Path("/tmp", f"ikigai-{os.getpid()}")
    in_tmp.write_text("another's")
    for file in (*outside.iterdir(), in_tmp, home / ".ssh" / "id"):
        file.chmod(0o600)
    held = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(outside)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={"SECRET": "s3cr3t"},
    )  # fmt: skip
    try:
        assert held.stdout is not None
        facts = json.loads(held.stdout.readline())
        names = {name: str(outside / name) for name in files if name != "d.db"}
        elsewhere = {"database": str(outside / "d.db"), "key": str(home / ".ssh" / "id"), "in_tmp": str(in_tmp)}
        yield Scene(work, outside, home, outside / "d.db", {
            **facts, **names, **elsewhere, "outside": str(outside), "system_file": f"/usr/ikigai-{os.getpid()}",
        })  # fmt: skip
    finally:
        held.communicate()
        in_tmp.unlink()


@functools.cache
def missing(mode: str) -> str:
    """Why this machine has no such fence; nothing when it has."""
    with tempfile.TemporaryDirectory() as place:
        try:
            made = open_enclosure(Fence(mode=mode), HostPaths(Path(place)), None, ENVIRONMENT, {}, lambda _: None)
        except BadInput as error:
            return str(error)
        assert made is not None
        made.close()
        return ""


def needs(mode: str) -> None:
    """Leave a test out where this machine has no such fence, and say why."""
    if why := missing(mode):
        import pytest  # which is not there where another user plays a scene

        pytest.skip(why)


@contextmanager
def enclosed(of: Scene, fence: Fence) -> Iterator[Enclosure]:
    """A fence around the workspace of a scene, until the block ends."""
    needs(fence.mode)
    made = open_enclosure(fence, of.paths, str(of.work), ENVIRONMENT, {}, lambda _: None)
    assert made is not None
    with contextlib.closing(made):
        yield made


@contextmanager
def planted(
    of: Scene, fence: Fence, before: str = "", after: str = "", how: Candidate | None = None, read: Sequence[str] = ()
) -> Iterator[Enclosure]:
    """Such a fence with a fault.

    Args:
        of: the scene.
        fence: what a person allows.
        before: a text of the launcher that is there once; nothing to leave it as it is.
        after: what it is replaced by.
        how: how the fence is made, if not in the strongest way.
        read: what can be read beside what may be.
    """
    needs(fence.mode)
    assert not before or SOURCE.count(before) == 1, before
    source = SOURCE.replace(before, after) if before else SOURCE
    work = str(of.work.resolve())
    floor = grounds(of.paths, work, ENVIRONMENT)
    reach = reach_of(fence, work, floor, real, names_in)
    reach = replace(reach, mounts=(*reach.mounts, *((path, path, False) for path in read)))
    how = how or candidates(fence.mode, reach.network, kernel())[0]
    directories = PrivateDirectories(of.paths.state)
    code = compiled(reach, how, directories.mount_point, source)
    with contextlib.closing(
        Enclosure(reach, how, code, directories, variables_of(ENVIRONMENT, reach, floor.home))
    ) as made:
        yield made


def run_in(
    of: Scene, command: Sequence[str], made: Enclosure | None, layered: tuple[str, str] = ("", "")
) -> "subprocess.CompletedProcess[str]":
    """Run a command in the workspace to its end, within a fence if there is one, seen through layers if it has any."""
    if made is not None:
        return run_started(made.launch("agent", *layered), made.environment("agent"), command, of.work)
    with Path("/etc/hosts").open() as leaked:
        return _run(command, of.work, dict(os.environ), (leaked.fileno(),))


def run_started(
    start: FencedStart, environment: dict[str, str], command: Sequence[str], directory: Path
) -> "subprocess.CompletedProcess[str]":
    """Run a command behind a fence to its end."""
    leaked = os.open("/etc/hosts", os.O_RDONLY)  # as by a library that makes it inheritable
    file, (lifeline, ours), (status_socket, status) = start.open(), os.pipe(), socket.socketpair()
    try:
        own = (file, lifeline, status.fileno())
        ran = _run(start.command(*own, command), directory, environment, (*own, leaked))
    finally:
        for each in (file, lifeline, leaked, ours):
            os.close(each)
        status.close()
    with status_socket:
        failure = status_socket.recv(4096).strip(b"\0").decode()
    assert not failure, failure
    return ran


def _run(
    command: Sequence[str], directory: Path, environment: dict[str, str], inherited: tuple[int, ...]
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, cwd=directory, env=environment, pass_fds=inherited, capture_output=True, text=True, timeout=SECONDS,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def escaped(of: Scene, made: Enclosure | None, *names: str, layered: tuple[str, str] = ("", "")) -> set[str]:
    """The attempts that get out; all are tried, or those that are named. For ``layered`` see `Enclosure.launch`."""
    (of.work / "escapes.py").write_text(ESCAPES.read_text())
    (of.work / "targets.json").write_text(json.dumps(of.targets))
    ran = run_in(of, [interpreter(), "escapes.py", "targets.json", *names], made, layered)
    assert ran.returncode == 0, ran
    return set(json.loads(ran.stdout)["out"])
