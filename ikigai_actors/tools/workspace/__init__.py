"""Workspace: a directory in which agents work, with the tools read, write, edit, glob, grep and bash.

    ActorSystem.open(tools=[Workspace("src")])

read, write, edit, glob and grep are confined to the directory: a path that leads out of it, by ``..``, from the root or
through a link, gives an error result. Exchanging a directory for a link meanwhile does not change that (see
`ikigai_actors.tools.workspace.beneath`). write and edit change no protected name, such as ``.git/hooks``.

bash runs in a fence, which is a sandbox: it can read the directory, a private home and the system's programs, can write
the first two, and reaches nothing else on the machine (see `ikigai_actors.tools.fence`). grep runs in the fence, too.
If the machine has no fence, a person gets a notice, and bash has all rights of the user. Then no rule can allow all of
bash, unless the workspace has ``fence="none"``. bash, write and edit need approval.

Each agent has a shell of its own, whose directory, variables and background jobs stay from call to call.

    starting      at the agent's first call, and at the first call after the shell has ended; the result reports this
    ready         the shell runs the calls of its agent one after another
    ended         by ``exit`` in a command, a time-out, a cancelled call (INT, death), `_IDLE` seconds without a call,
                  the end of the agent or of the system; a result names the cause. A forked agent has no shell at first

With ``on_fork="overlay"`` an agent that forks, and its child, have files of their own from then on: each sees the
directory beneath layers of changes (see `ikigai_actors.tools.trees`). With ``on_fork="worktree"`` the child has a
worktree of git (see `ikigai_actors.tools.workspace.worktrees`).

The modules: `bash` and `shells` run commands, and `apart` those that only a pattern allows; `files` and `grep` are the
other tools, `withheld` finds the files that rules hide from these, `beneath` confines them, `merging` brings changes
from child to parent, `pruned_files` removes the files of agents that nobody needs, `worktree_scripts` has the scripts
for worktrees, and `skill_files` lays the files of skills out, read-only, where ``$IKIGAI_SKILLS`` names a directory.

All processes in a shell end with it, background jobs too: TERM, and after two seconds KILL. When the host is killed, a
guard sees its pipe close and kills the rest. Without a fence that is every process of the shell's session: one that
began a session of its own (``setsid``, a daemon) is not found, and the guard can be killed.
"""

import asyncio
import os
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ikigai_actors.actors.threads import in_thread
from ikigai_actors.arguments import check_choice, check_flag, check_seconds, check_variables, shown
from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.tools.base import Tell, Toolset
from ikigai_actors.tools.commands import run_command
from ikigai_actors.tools.fence.enclosure import Enclosure, default_paths, open_enclosure
from ikigai_actors.tools.fence.policy import PROTECTED, Fence
from ikigai_actors.tools.fence.private import PrivateDirectories
from ikigai_actors.tools.function import FunctionTool, Tool, ToolError
from ikigai_actors.tools.policy import Compared, Subject
from ikigai_actors.tools.skills.digests import SKILLS_VARIABLE
from ikigai_actors.tools.trees.places import TreePlaces
from ikigai_actors.tools.trees.tree import OVERLAY, WORKTREE, Copied
from ikigai_actors.tools.workspace.beneath import Root
from ikigai_actors.tools.workspace.files import editable_text, file_tools
from ikigai_actors.tools.workspace.grep import grep_tool
from ikigai_actors.tools.workspace.merging import merge_files
from ikigai_actors.tools.workspace.shells import BASH, SeenByAgent, Shells, bash_tool
from ikigai_actors.tools.workspace.skill_files import lay_out_skills

ON_FORK = ("share", OVERLAY, WORKTREE)
"""The values of ``on_fork``, which says what files a child gets."""

_FORKING = "From a fork on, parent and child each have files of their own, and do not see what the other changes."
"""The text added to the description of bash if files fork with agents."""

_IN_WORKTREES = (
    "A child has a branch of its own in the same repository, and no files that git ignores or of repositories within."
)
"""The text added to the description of bash if children get worktrees."""

_IDLE = 600.0
"""Seconds after which an unused shell is closed."""

_HOOKS = "hooks"
"""The name of the private directory of the commands that are asked as hooks."""

PASSED_ON = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
"""The environment variables that commands get, besides ``LC_*``. Others may contain keys and passwords. This is no
protection: without a fence, a command runs as the same user, who can read ``/proc/$PPID/environ``.
"""


class Workspace(Toolset):
    """The tools that work in a directory, as a toolset."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        fence: str = "auto",
        network: str | Sequence[int] = "all",
        read: Sequence[str | os.PathLike[str]] = (),
        write: Sequence[str | os.PathLike[str]] = (),
        protect: Sequence[str] = PROTECTED,
        on_fork: str = "share",
        keep_turns: bool = False,
        environment: Mapping[str, str] | None = None,
        idle: float = _IDLE,
    ) -> None:
        """Describe a workspace.

        Args:
            directory: the directory of the workspace; it must exist.
            fence: ``auto``: the strongest fence that this machine has; ``required``: the full fence, or an error;
                ``landlock``: at least Landlock; ``none``: no fence.
            network: the network that commands may reach: ``all``, ``none``, a list of TCP ports, or ``proxy:PORT`` on
                this machine.
            read: further directories and files that commands may read, besides the system's programs.
            write: further directories and files that commands may write, besides the workspace.
            protect: names beneath the directory that no agent may change, if they exist.
            on_fork: the files that a child gets. ``share``: the directory itself, like its parent. ``overlay``: the
                files that its parent has at the fork; after it, neither sees the changes of the other, and the
                directory itself does not change any more. ``worktree``: a worktree of git on its own branch, with all
                files that git does not ignore, while the first agent works in the directory. See
                `AgentRef.merge_files`.
            keep_turns: whether the files of each turn are kept, so that a search, a bisection or a fork at an earlier
                position gets the files of that time. Needs ``overlay``. An agent then has its own files from its first
                change on, and its shell starts again in each turn.
            environment: environment variables for the commands of bash, besides `PASSED_ON` and ``LC_*``.
            idle: the seconds after which an unused shell is closed, with its background jobs.

        Raises:
            BadInput: there is no such directory, or another argument cannot be used.
        """
        if not isinstance(directory, str | os.PathLike):
            raise BadInput(f"Expected directory to be a path; got {shown(directory)}.")
        self.directory: Path = Path(directory).absolute()
        if not self.directory.is_dir():
            state = "is a file" if self.directory.exists() else "does not exist"
            raise BadInput(f"Expected a directory as workspace, but {directory} {state}. Create it, or name another.")
        self._fence = Fence(write, read, network, protect, fence)
        self._on_fork = check_choice(on_fork, "on_fork", ON_FORK)
        self._keep_turns = check_flag(keep_turns, "keep_turns")
        if self._keep_turns and self._on_fork != "overlay":
            raise BadInput("keep_turns=True keeps the layers of agents, so it needs on_fork='overlay'.")
        self._given = check_variables(environment, "environment")
        self._idle = check_seconds(idle, "idle", zero=False)
        self._shells: Shells | None = None
        self._unfenced: PrivateDirectories | None = None
        self._unfenced_variables: Mapping[str, str] = {}
        self._text_of: Callable[[str, str], str | None] = lambda agent, path: None

    @property
    def name(self) -> str:
        return f"workspace {self.directory}"

    async def open(self, tell: Tell) -> Sequence[Tool]:
        loop = asyncio.get_running_loop()
        made: list[Tool] = await in_thread(lambda: self._make(tell, loop), "ikigai-workspace")  # it imports pydantic
        return made

    def _make(self, tell: Tell, loop: asyncio.AbstractEventLoop) -> list[Tool]:
        passed_on = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("LC_")}
        passed_on["TERM"] = "dumb"
        environment = {**passed_on, **self._given}
        enclosure = open_enclosure(self._fence, self.host_paths, str(self.directory), passed_on, self._given, tell)
        root = Root(self.directory, protect=self._protected(enclosure))
        begin = self.directory if enclosure is None else root.resolved
        places = self._places(root.resolved, enclosure)
        skills = self._place_of_skills(enclosure)
        environment[SKILLS_VARIABLE] = str(skills)
        self._unfenced_variables = environment
        self._shells = Shells(begin, environment, self._idle, enclosure, places, loop, tell)
        self._text_of = lambda agent, path: _text(root, places, agent, path)
        grep = grep_tool(root, environment, sysconfig.get_path("scripts"), enclosure)
        of_files = [*file_tools(root), *([grep] if grep is not None else [])]
        paths = Subject(
            Compared.PATH,
            lambda agent, paths: _shown(root, places, agent, str(paths.get("file_path") or paths.get("path") or ".")),
        )
        commands = Subject(Compared.COMMAND, lambda _, paths: str(paths.get("command", "")))
        seen = [SeenByAgent(self._confined(_ruled_by(tool, paths)), self._shells) for tool in of_files]
        whole = self._fence.mode == "none" or (enclosure is not None and enclosure.how.is_proven)
        bash = _ruled_by(
            bash_tool(self._shells, lambda loaded: lay_out_skills(skills, loaded, self.read_blobs)), commands
        )
        if self.copied is not None:
            note = f"{_FORKING} {_IN_WORKTREES}" if self._on_fork == WORKTREE else _FORKING
            bash = replace(bash, description=f"{bash.description} {note}")
        if self._fence.network == "none" and not self._fence.write:
            bash = self._confined(bash)
        return [*seen, replace(bash, traits=replace(bash.traits, unfenced=not whole))]

    def _place_of_skills(self, enclosure: Enclosure | None) -> Path:
        """Return the directory below which the files of skills are written."""
        if enclosure is not None:
            return enclosure.skills
        self._unfenced = PrivateDirectories((self.host_paths or default_paths()).state)
        return self._unfenced.skills

    def _places(self, directory: Path, enclosure: Enclosure | None) -> TreePlaces | None:
        """Return the places of agents' layers; None if agents have none. Raises `BadInput` if layers cannot be made."""
        if self.trees is None:
            return None
        state, kind = (self.host_paths or default_paths()).state, self._on_fork
        forks = kind != "share"
        places = TreePlaces(state, str(directory), self.trees, kind=kind if forks else "", keep_turns=self._keep_turns)
        if forks:
            if enclosure is None:
                raise BadInput(f"on_fork={kind!r} needs a fence, which mounts the directory. Leave fence='none' out.")
            if why := enclosure.without_layers(places) if kind == OVERLAY else enclosure.without_worktrees():
                raise BadInput(f"on_fork={kind!r} cannot be had: {why}. Take on_fork='share'.")
            self.copied = Copied(str(directory), places.machine, kind)
        return places

    def _confined(self, tool: FunctionTool) -> FunctionTool:
        """Return the tool, marked as confined if files fork, because it then changes only its agent's own files."""
        forks = self.copied is not None and self.copied.kind == OVERLAY  # a worktree shares its repository with others
        return replace(tool, traits=replace(tool.traits, confined=forks))

    def _protected(self, enclosure: Enclosure | None) -> list[str]:
        if enclosure is None:
            return [] if self._fence.mode == "none" else list(self._fence.protect)
        return [name for above, name in enclosure.reach.protect if above == enclosure.reach.directory]

    async def merge_files(self, agent: str, child: str, how: str | None = None) -> list[str]:
        if self._shells is None or self._shells.places is None:
            raise BadInput(f"{self.name} is not open in a system, so it has no files of agents.")
        return await merge_files(self._shells, self._shells.places, agent, child, how)

    async def run_hook(self, command: str, text: str) -> tuple[int, str, str]:
        """Run a command of a hook in the directory and in the fence of bash; see `Toolset.run_hook`."""
        shells = self._shells
        if shells is None:
            raise BadInput(f"{self.name} is not open in a system.")
        held = shells.enclosure
        if held is None and self._fence.mode != "none":
            raise BadInput(f"There is no fence for the commands of {self.name}. `ikigai doctor` says why.")
        if held is None:
            environment, fence = self._unfenced_variables, None
        else:
            environment, fence = await in_thread(
                lambda: (held.environment(_HOOKS), held.launch(_HOOKS)), "ikigai-fence"
            )
        return await run_command(BASH, command, text, directory=self.directory, environment=environment, fence=fence)

    def text_of(self, agent: str, path: str) -> str | None:
        return self._text_of(agent, path) if self._shells is not None else None

    def printed(self, agent: str) -> Mapping[str, str]:
        return {} if self._shells is None else self._shells.printed(agent)

    async def leave(self, agent: str) -> None:
        """End the agent's shell."""
        if self._shells is not None:
            await self._shells.leave(agent)

    async def close(self) -> None:
        """End all shells."""
        if self._shells is not None:
            await self._shells.close()
        if self._unfenced is not None:
            await in_thread(self._unfenced.close, "ikigai-skills")
            self._unfenced = None


def _ruled_by(tool: FunctionTool, subject: Subject) -> FunctionTool:
    return replace(tool, traits=replace(tool.traits, subject=subject))


def _text(root: Root, places: TreePlaces | None, agent: str, path: str) -> str | None:
    """Return the text of a file as an agent sees it; None if the agent sees no such file."""
    try:
        inner = root.within(path)
        view = None if places is None else places.view(agent)
        if view is None:
            return editable_text(root, path)
        target = view.find(inner)
        return None if target is None or view.shown(inner) != inner else editable_text(Root(target.parent), target.name)
    except (ToolError, IkigaiError, ValueError, OSError):
        return None


def _shown(root: Root, places: TreePlaces | None, agent: str, path: str) -> str:
    """Return the path to which a path leads in an agent's view; see `Root.shown`."""
    try:
        view = None if places is None else places.view(agent)
        return root.shown(path) if view is None else view.shown(root.within(path))
    except (ToolError, IkigaiError, ValueError):
        return path
