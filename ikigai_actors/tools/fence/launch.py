"""How the host starts a program behind the fence: the text of the launcher, with a reach, in a file of its memory.

An agent may write to the workspace, where this package may lie. So the text is read once, when this module is imported.
"""

import marshal
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.fence.grounds import interpreter
from ikigai_actors.tools.fence.policy import LARGEST_REACH, Reach
from ikigai_actors.tools.fence.seatbelt import seatbelt_command
from ikigai_actors.tools.fence.tiers import Candidate

SOURCE = Path(__file__).with_name("launcher.py").read_text(encoding="utf-8")
"""The launcher."""

HANDED = b"\0"
"""The parts that come with descriptors that the launcher hands over."""

_SECONDS = 20.0
"""How long a trial may take."""


@dataclass(frozen=True, slots=True)
class FencedStart:
    """A way to start programs of one agent."""

    code: bytes
    """The launcher with its reach, of `compiled`."""
    private: Path
    """The directory with ``home`` and ``tmp`` of these programs."""
    trees: str = ""
    """The directory with the layers of agents."""
    layers: str = ""
    """The layers through which the workspace is seen, as `launcher` wants them; none: it is seen as it is."""
    shown: int = -1
    """A descriptor of what the program may read, wherever that is; -1 for none."""
    profile: str = ""
    """The profile of a program on macOS, where no launcher runs."""

    def open(self) -> int:
        """A descriptor of a file in memory that holds the launcher; the caller closes it."""
        file = os.memfd_create("ikigai-fence")
        os.write(file, self.code)
        return file

    def command(self, file: int, lifeline: int, status: int, command: Sequence[str]) -> list[str]:
        """The command that starts a program, by descriptors that it inherits."""
        own = [f"/dev/fd/{file}", *map(str, (lifeline, status, self.shown, self.private)), self.trees, self.layers]
        return [interpreter(), "-I", "-S", *own, *command]


def compiled(reach: Reach, how: Candidate, mount_point: Path, source: str = SOURCE) -> bytes:
    """The launcher, with what it is to do, compiled for `interpreter`.

    Args:
        reach: what programs may reach.
        how: how the fence is made.
        mount_point: an empty directory.

    Raises:
        BadInput: the lists are too long.
    """
    proxy = reach.network.ports[0] if reach.network.kind == "proxy" else 0
    arguments = {
        "namespaces": how.namespaces,
        "landlock": how.landlock,
        "directory": reach.directory,
        "root": str(mount_point),
        "links": reach.links,
        "mounts": reach.mounts,
        "protect": reach.protect,
        "network": "none" if proxy else reach.network.kind,
        "ports": reach.network.ports if reach.network.kind == "ports" else (),
        "proxy": proxy,
        "unix_sockets": how.unix_sockets,
    }
    text = repr(arguments)
    if len(text) > LARGEST_REACH:
        raise BadInput(
            f"A fence of {len(text):,} bytes is more than {LARGEST_REACH:,}: list directories, not their files."
        )
    code = compile(f"{source}\nlaunch(**{text})\n", "<fence>", "exec", dont_inherit=True)
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


def trial(launch: FencedStart, environment: Mapping[str, str]) -> str:
    """Start a program that does nothing; what went wrong, or nothing. Blocks."""
    if launch.profile:
        return _trial_by_profile(launch.profile, environment)
    file, (lifeline, ours), (told, status) = launch.open(), os.pipe(), socket.socketpair()
    inherited = (file, lifeline, status.fileno())
    try:
        command = launch.command(*inherited, ["true"])
        try:
            ran = subprocess.run(
                command, env=dict(environment), pass_fds=inherited, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=_SECONDS, cwd="/", check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        finally:
            for descriptor in (file, lifeline):
                os.close(descriptor)
            status.close()
        words = told.recv(4096).lstrip(HANDED).decode(errors="replace")
        return words or (f"it ended with exit code {ran.returncode}" if ran.returncode else "")
    finally:
        os.close(ours)
        told.close()


def _trial_by_profile(profile: str, environment: Mapping[str, str]) -> str:
    command = seatbelt_command(profile, ["true"])
    try:
        ran = subprocess.run(
            command, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_SECONDS, cwd="/", check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (ran.stderr.strip() or f"it ended with exit code {ran.returncode}") if ran.returncode else ""
