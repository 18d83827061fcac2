"""Workspace: a directory that agents work in, with the tools read, write, edit, glob, grep and bash.

    ActorSystem.open(tools=[Workspace("src")])

read, write, edit, glob and grep are confined to the directory: a path that leads out of it, by ``..``, from the root or
through a link, gives an error result. Exchanging a directory for a link meanwhile does not change that (see
`ikigai_actors.tools.workspace.beneath`). **bash is not confined**: it begins in the directory and does what the user
may do. So bash, write and edit ask for approval.

bash: each agent has a shell of its own, whose directory, variables and background jobs stay from call to call.

    starting      with the agent's first call, and with the first one after the shell has ended; the result says so
    ready         the calls of one agent take turns
    ended         by ``exit`` in a command, a time-out, a cancelled call (INT, death), `_IDLE` seconds without a call,
                  the end of the agent or of the system; a result says which. A forked agent has none at first

All processes in a shell end with it, background jobs too: TERM, and after two seconds KILL, for every process of its
session. A process that began a session of its own (``setsid``, a daemon) is not found. When the host is killed, a guard
in each shell's session sees its pipe close and kills the rest, unless that guard was itself killed.
"""

import os
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from ikigai_actors.actors.threads import in_thread
from ikigai_actors.arguments import check_seconds, check_variables, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.tools.base import Tell, Toolset
from ikigai_actors.tools.function import Tool
from ikigai_actors.tools.workspace.beneath import Root
from ikigai_actors.tools.workspace.files import file_tools
from ikigai_actors.tools.workspace.grep import grep_tool
from ikigai_actors.tools.workspace.shells import Shells, bash_tool

_IDLE = 600.0
"""Seconds after which an unused shell is closed."""

PASSED_ON = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
"""The variables of our environment that commands get, with ``LC_*``. No others: they may hold keys and passwords. That
is no fence: a command runs as the same user, who may read ``/proc/$PPID/environ``.
"""


class Workspace(Toolset):
    """The tools that work in a directory."""

    def __init__(
        self, directory: str | os.PathLike[str], *, environment: Mapping[str, str] | None = None, idle: float = _IDLE
    ) -> None:
        """Name the directory.

        Args:
            directory: the directory; it must exist.
            environment: variables for the commands of bash, beside `PASSED_ON` and ``LC_*`` of our own.
            idle: seconds after which an unused shell is closed, with its background jobs.

        Raises:
            BadInput: there is no such directory, or another argument cannot be used.
        """
        if not isinstance(directory, str | os.PathLike):
            raise BadInput(f"Expected directory to be a path; got {shown(directory)}.")
        self.directory = Path(directory).absolute()
        if not self.directory.is_dir():
            found = "is a file" if self.directory.exists() else "does not exist"
            raise BadInput(f"Expected a directory as workspace, but {directory} {found}. Create it, or name another.")
        passed_on = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("LC_")}
        self._environment = {**passed_on, "TERM": "dumb", **check_variables(environment, "environment")}
        self._shells = Shells(self.directory, self._environment, check_seconds(idle, "idle", zero=False))

    @property
    def name(self) -> str:
        return f"workspace {self.directory}"

    async def open(self, tell: Tell) -> Sequence[Tool]:
        made: list[Tool] = await in_thread(self._make, "ikigai-workspace")  # it imports pydantic
        return made

    def _make(self) -> list[Tool]:
        root = Root(self.directory)
        grep = grep_tool(root, self._environment, sysconfig.get_path("scripts"))
        return [*file_tools(root), *([grep] if grep is not None else []), bash_tool(self._shells)]

    async def leave(self, agent: str) -> None:
        """End the agent's shell."""
        await self._shells.leave(agent)

    async def close(self) -> None:
        """End every shell."""
        await self._shells.close()
