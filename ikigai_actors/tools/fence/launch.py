"""Starts programs in the fence: the launcher's code, with the rights of the program, in an in-memory file.

An agent may write to the workspace, where this package may lie. So the text is read once, when this module is imported.
"""

import marshal
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.fence.grounds import interpreter
from ikigai_actors.tools.fence.policy import LARGEST_REACH, Reach
from ikigai_actors.tools.fence.seatbelt import seatbelt_command
from ikigai_actors.tools.fence.tiers import Candidate

SOURCE = Path(__file__).with_name("launcher.py").read_text(encoding="utf-8")
"""The source code of the launcher."""

_PARAMETERS = "the parameters of a launcher"
"""The constant of the compiled launcher in whose place its parameters are put."""

HANDED = b"\0"
"""The beginning of a mount's source that the launcher gets as an open descriptor."""

_SECONDS = 20.0
"""The most seconds of a trial."""


@dataclass(frozen=True, slots=True)
class FencedStart:
    """Starts programs of one agent in the fence."""

    code: bytes
    """The compiled launcher with the rights of programs, from `compiled`."""
    private: Path
    """The private directory of these programs, with ``home`` and ``tmp``."""
    trees: str = ""
    """The directory with the layers of agents; empty for none."""
    layers: str = ""
    """The layers through which the workspace is mounted, as `launcher` needs them; empty mounts it directly."""
    shown: int = -1
    """A descriptor of a file or directory that the program may read, wherever it is; -1 for none."""
    profile: str = ""
    """The profile of a program on macOS, where there is no launcher."""

    def open(self) -> int:
        """Return a descriptor of an in-memory file that has the launcher. The caller closes it."""
        file = os.memfd_create("ikigai-fence")
        os.write(file, self.code)
        return file

    def command(self, file: int, lifeline: int, status: int, command: Sequence[str]) -> list[str]:
        """Return the command that starts a program by the launcher. The program inherits the descriptors."""
        own = [f"/dev/fd/{file}", *map(str, (lifeline, status, self.shown, self.private)), self.trees, self.layers]
        return [interpreter(), "-I", "-S", *own, *command]


def compiled(reach: Reach, how: Candidate, mount_point: Path, source: str = SOURCE) -> bytes:
    """Compile the launcher, with its parameters, for `interpreter`.

    Args:
        reach: the files and networks that programs may reach.
        how: the kind of fence.
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
    code = _without_parameters(source)
    own = code.replace(co_consts=tuple(arguments if const == _PARAMETERS else const for const in code.co_consts))
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(own)


@lru_cache(maxsize=1)
def _without_parameters(source: str) -> CodeType:
    """Compile the launcher once, since each toolset of a process starts it with other parameters."""
    return compile(f"{source}\nlaunch(**{_PARAMETERS!r})\n", "<fence>", "exec", dont_inherit=True)


def trial(launch: FencedStart, environment: Mapping[str, str]) -> str:
    """Start a program that does nothing, as a test of the fence. Return the error; empty for none. Blocks."""
    if launch.profile:
        return _trial_by_profile(launch.profile, environment)
    file, (lifeline, ours), (report, status) = launch.open(), os.pipe(), socket.socketpair()
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
        words = report.recv(4096).lstrip(HANDED).decode(errors="replace")
        return words or (f"it ended with exit code {ran.returncode}" if ran.returncode else "")
    finally:
        os.close(ours)
        report.close()


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
