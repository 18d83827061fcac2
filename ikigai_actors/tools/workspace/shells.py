"""The shells of a workspace, one for each agent, and the tool bash, which runs commands in them."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from subprocess import DEVNULL
from typing import Annotated, Any

from ikigai_actors.actors.futures import current_acting_agent
from ikigai_actors.actors.threads import current_threads, in_thread
from ikigai_actors.errors import IkigaiError
from ikigai_actors.tools.base import Tell
from ikigai_actors.tools.effect_keys import acting_call
from ikigai_actors.tools.fence.enclosure import Enclosure
from ikigai_actors.tools.fence.launch import FencedStart
from ikigai_actors.tools.fence.launcher import HOME
from ikigai_actors.tools.function import TIMEOUT, FunctionTool, Result, Tool, ToolError, tool
from ikigai_actors.tools.policy import Policy, ToolTraits
from ikigai_actors.tools.process import ChildProcess, ExitWaiter
from ikigai_actors.tools.skills.acting import acting_skills
from ikigai_actors.tools.trees.places import Stack, TreePlaces
from ikigai_actors.tools.trees.tree import WORKTREE, FileTree, TreeRows
from ikigai_actors.tools.workspace.apart import run_apart
from ikigai_actors.tools.workspace.bash import Bash, CommandOutput
from ikigai_actors.tools.workspace.beneath import acting_top
from ikigai_actors.tools.workspace.worktrees import FileSnapshot, Mount, Worktrees

_LONGEST = 600.0
"""The most seconds of a command."""

BASH = shutil.which("bash") or "/bin/bash"

QUEUED = 3600.0
"""The most seconds of a call, including the wait for earlier calls of the agent."""


_KEPT = f"{HOME}/.kept-shell"
_KEEP = rf"\builtin export -p >| {_KEPT} && \builtin printf '\\builtin cd -- %q\n' " + f'"$PWD" >> {_KEPT}'
"""A command that keeps directory and exported variables of a shell for the next one."""
_RESTORE = rf"\builtin . {_KEPT}; \builtin command rm -f {_KEPT}"

_FORKED, _KEPT_UP_TO_HERE = "your files have forked", "your files up to here are kept"
_RESTARTED = "so background jobs were ended; directory and exported variables are as before"

_MOMENT = 10.0
"""The most seconds for commands that the runtime itself runs in a shell."""


class AgentSlot:
    """The state of one agent in a workspace: its shell, if any, and its mounted directory."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        """Held by the call that runs."""
        self.shell: Bash | None = None
        self.call = ""
        """The id of the call whose command runs; empty while none does."""
        self.last_end = ""
        """The reason why the earlier shell has ended."""
        self.idle: asyncio.TimerHandle | None = None
        """The timer that closes an idle shell."""
        self.mount: Mount | None = None
        """The directory, where that is seen through layers."""
        self.kept = False
        """Whether the next shell gets what the one before has kept."""
        self.news = ""
        """The text about its files for its next result."""

    def tell(self) -> str:
        """Return the notices about the agent's files for its next result, and forget them."""
        news, self.news = self.news, ""
        return news

    def close(self) -> None:
        """Release the agent's directory, and cancel its timers. No call may be running there."""
        if self.idle is not None:
            self.idle.cancel()
        if self.mount is not None:
            self.mount.close()
            self.mount = None


class MissingNames:
    """The protected names that do not exist in a workspace. A fence can protect only existing ones.

    An agent may create one of them, and a program of a person may then execute it. So the person gets a notice, once
    for each name.
    """

    def __init__(self, names: Iterable[tuple[str, str]], tell: Tell) -> None:
        """Note which of these names are missing. Each is a directory and a name beneath it."""
        self._missing = [path for above, name in names if not os.path.lexists(path := Path(above, name))]
        self._tell = tell

    def made(self) -> str:
        """Return a notice for the model about protected names that exist now, and notify the person; empty for none."""
        new = [path for path in self._missing if os.path.lexists(path)]
        if not new:
            return ""
        self._missing = [path for path in self._missing if path not in new]
        names = " and ".join(map(str, new))
        text = f"An agent has made {names}. Programs that you start there may run that unasked: look at it first."
        self._tell(text)
        return f"[{text}]"


class Shells:
    """The shells of a workspace. All methods run on the runtime's event loop, unless they say so."""

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str],
        idle: float,
        enclosure: Enclosure | None = None,
        places: TreePlaces | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        tell: Tell = lambda text: None,
    ) -> None:
        """Begin without shells.

        Args:
            directory: the directory in which shells start.
            environment: the environment variables of a shell without a fence.
            idle: the seconds without a call after which a shell is closed.
            enclosure: the fence around each shell; None for none.
            places: the layers through which agents see the directory; None if all see it directly.
            loop: the runtime's event loop, for calls on other threads; None if there are no layers.
            tell: takes sentences for a person.
        """
        self._missing = MissingNames(() if enclosure is None else enclosure.reach.protect, tell)
        self._directory, self._environment, self._idle = directory, environment, idle
        self.enclosure, self.places = enclosure, places
        self._slots: dict[str, AgentSlot] = {}
        self._living: set[Bash] = set()
        self._loop = loop
        self._exits = ExitWaiter()

    @cached_property
    def worktrees(self) -> Worktrees:
        """The worktrees of agents, if files fork as worktrees."""
        assert self.enclosure is not None
        assert self.places is not None
        return Worktrees(self.enclosure, self.places)

    async def run(self, agent: str, command: str, seconds: float) -> Result:
        """Run a command in the shell of an agent, after the agent's earlier calls have ended."""
        slot = self._slots.setdefault(agent, AgentSlot())
        async with slot.turn:
            news = ""
            try:
                rows = await self._settled(agent, slot, _reply())
                if slot.idle is not None:
                    slot.idle.cancel()
                if slot.shell is None or slot.shell.over:
                    news = f"[new shell in {self._directory}{slot.last_end}]"
                    await self._begin(agent, slot, rows)
            except ToolError as error:
                return Result(str(error), True)
            except OSError as error:
                return Result(f"A shell could not be started: {error}.", True)
            news = "\n".join(notice for notice in (slot.tell(), news) if notice)
            assert slot.shell is not None
            shell, current = slot.shell, acting_call.get(None)
            slot.call = current.id if current is not None else ""
            try:
                if current is not None and current.by_pattern:
                    apart, ran = await run_apart(shell, command, seconds)
                else:
                    apart, ran = "", await shell.run(command, seconds)
            except ToolError as error:
                self._rest_later(slot)
                return _after(news, Result(str(error), True))
            except BaseException:
                await self._end(slot, shell, "the one before was ended with a call that was cancelled")
                raise
            finally:
                slot.call = ""
            if ran.code is not None:
                self._rest_later(slot)
                news = "\n".join(notice for notice in (news, self._missing.made(), apart) if notice)
                return _result(news, ran, f"exit code {ran.code}" if ran.code else "")
            by_itself = shell.over
            await self._end(slot, shell, "the one before had ended")
            how = (
                f"the shell ended with exit code {shell.exit_code}"
                if by_itself
                else f"not finished after {seconds:g} s, so it was ended, and the shell with it"
            )
            return _result(news, ran, f"{how}; the next call gets a new shell")

    def printed(self, agent: str) -> Mapping[str, str]:
        """Return the latest output of an agent's running command, by the id of its call. Thread-safe."""
        slot = self._slots.get(agent)
        call, shell = (slot.call, slot.shell) if slot is not None else ("", None)
        return {call: shell.printed} if call and shell is not None else {}

    async def _begin(self, agent: str, slot: AgentSlot, rows: TreeRows | None) -> None:
        held = self.enclosure
        if held is None:
            shell = await Bash.start(BASH, self._directory, self._environment, self._exits)
        else:
            shell = await Bash.start(
                BASH, self._directory, held.environment(agent), self._exits, await self._launch(agent, slot, rows)
            )
            self._keep(slot, rows, shell.handed)
        slot.shell = shell
        self._living.add(shell)
        if slot.kept:
            await shell.run(_RESTORE, _MOMENT)
            slot.kept = False

    @contextmanager
    def holding(self, seconds: float, writes: bool = True) -> Iterator[str]:
        """Let a tool on this thread see the acting agent's files until the block ends.

        Yields a notice about the agent's files for the result.

        The calls of an agent with a tree take turns, so that no layer is frozen while a call writes.

        Args:
            seconds: the most seconds to wait for the agent's earlier calls.
            writes: whether the tool may change files.

        Raises:
            ToolError: the agent's files are on another machine, or the earlier calls did not end in time.
        """
        places, position = self.places, _reply() if writes else 0
        agent = "" if places is None else current_acting_agent().uuid
        if places is None or not _checked(places, places.begin_write(agent, position))[0]:
            yield ""
            return
        assert self._loop is not None
        held = asyncio.run_coroutine_threadsafe(self._hold(agent, position), self._loop)
        try:
            slot = current_threads().result(held, seconds)
        except TimeoutError as error:
            if not held.cancel():
                self._release(held.result())
            raise ToolError(f"An earlier call had not ended after {seconds:g} s. Nothing was done.") from error
        try:
            with self._seen(slot):
                yield slot.tell()
        finally:
            self._release(slot)

    def _release(self, slot: AgentSlot) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._release_here, slot)

    def _release_here(self, slot: AgentSlot) -> None:
        slot.turn.release()
        self._rest_later(slot)

    @asynccontextmanager
    async def holding_here(self, writes: bool = True) -> AsyncIterator[str]:
        """Do the same as `holding`, on the event loop."""
        position = _reply() if writes else 0
        if self.places is None or not (await self._rows(agent := current_acting_agent().uuid, position))[0]:
            yield ""
            return
        slot = await self._hold(agent, position)
        try:
            with self._seen(slot):
                yield slot.tell()
        finally:
            self._release_here(slot)

    @contextmanager
    def _seen(self, slot: AgentSlot) -> Iterator[None]:
        before = acting_top.set(None if slot.mount is None else slot.mount.directory)
        try:
            yield
        finally:
            acting_top.reset(before)

    async def _hold(self, agent: str, position: int) -> AgentSlot:
        """Wait for the turn of an agent with a tree, and mount its directory. The caller releases the turn."""
        slot = self._slots.setdefault(agent, AgentSlot())
        await slot.turn.acquire()
        try:
            rows = await self._settled(agent, slot, position)
            if rows is not None and rows[0][0].kind == WORKTREE:
                slot.mount = slot.mount or self.worktrees.opened(rows[0][0])
            elif slot.mount is None and rows is not None and self.enclosure is not None:
                fence = await self._launch(agent, slot, rows)
                program = await ChildProcess().spawn(
                    ["true"], environment=self.enclosure.environment(agent), stdin=DEVNULL, stderr=DEVNULL, fence=fence
                )
                self._keep(slot, rows, program.handed)
                await program.ended()
                await program.reap()
        except OSError as error:
            slot.turn.release()
            raise ToolError(f"The directory could not be mounted: {error}.") from error
        except BaseException:
            slot.turn.release()
            raise
        return slot

    @asynccontextmanager
    async def at_rest(self, agent: str) -> AsyncIterator[None]:
        """Wait for an agent's turn, and hold it until the block ends. No process of the agent can write meanwhile."""
        slot = self._slots.setdefault(agent, AgentSlot())
        async with slot.turn:
            await self._let_go(slot, "")
            yield

    async def _rows(self, agent: str, position: int) -> TreeRows:
        assert self.places is not None
        places = self.places
        rows: TreeRows = await in_thread(lambda: places.begin_write(agent, position), "ikigai-trees")
        return _checked(places, rows)

    async def _settled(self, agent: str, slot: AgentSlot, position: int) -> TreeRows | None:
        """End the shells and mounts that still write to a frozen layer of an agent's tree; return the tree.

        A command that runs at the moment of a fork counts as earlier than the fork, so this waits for the command's
        end.

        Args:
            agent: the uuid of the agent.
            slot: the state of the agent in this workspace.
            position: the reply whose calls are about to write; 0 for calls that do not.

        Returns:
            The agent's tree; None when it has none.
        """
        if self.places is None:
            return None
        rows = await self._rows(agent, position)
        if rows[0] and (self.enclosure is None or not self.enclosure.how.namespaces):
            raise ToolError(
                "The files of this agent are in layers of their own, which only a fence with namespaces can mount. Ask "
                "the person to run `ikigai doctor`."
            )
        if rows[0] and rows[0][0].kind == WORKTREE:
            if await self._prepare(rows[0]):
                if slot.shell is not None:
                    await self._end(slot, slot.shell, "the one before had ended with its worktree")
                slot.close()
            return rows
        for tree in rows[0]:
            other = self._slots.get(tree.agent)
            if other is slot:
                await self._let_go(slot, f"{tree.agent}/{tree.upper}")
            elif other is not None:
                async with other.turn:
                    await self._let_go(other, f"{tree.agent}/{tree.upper}")
        return rows if rows[0] else None

    async def _prepare(self, trees: Sequence[FileTree]) -> bool:
        """Make the worktree of an agent whose turn is held, and the snapshot on which its latest child is built.

        Returns:
            Whether the worktree was missing, and had to be made.
        """
        own, worktrees = trees[0], self.worktrees
        missing = not worktrees.is_made(own)
        if missing:
            self._slot(own).news = await worktrees.make(own, await self._snapshot(trees[1:], own.below))
        await worktrees.finish(own)
        if own.upper and worktrees.kept(own, own.upper - 1) is None:
            await worktrees.snapshot(own, str(own.upper - 1))
        return missing

    async def _snapshot(self, trees: Sequence[FileTree], layers: int) -> FileSnapshot:
        """Return a snapshot of an agent's files with this many frozen layers. The agent has written nothing since.

        Args:
            trees: the tree of the agent, and the trees on which it is built.
            layers: the number of frozen layers.
        """
        tree, number = trees[0], max(layers - 1, 0)
        if tree.parent is not None and layers == 0:  # it has what it began with
            return await self._snapshot(trees[1:], tree.below)
        async with self._slot(tree).turn:
            if (known := self.worktrees.kept(tree, number)) is not None:
                return known
            if self.worktrees.is_made(tree):
                return await self.worktrees.snapshot(tree, str(number))
            latest = await self.worktrees.latest(tree)
        return latest or await self._snapshot(trees[1:], tree.below)

    async def fork_point(self, trees: Sequence[FileTree], agent: str) -> str:
        """Return the commit of an agent's files when a descendant was born; empty if no snapshot exists.

        Args:
            trees: the tree of the descendant, and the trees on which it is built.
            agent: the uuid of the agent.
        """
        for place, tree in enumerate(trees):
            if tree.parent == agent:
                return (await self._snapshot(trees[place + 1 :], tree.below)).commit
        return ""

    def _slot(self, tree: FileTree) -> AgentSlot:
        return self._slots.setdefault(tree.agent, AgentSlot())

    @asynccontextmanager
    async def prepared(self, agent: str) -> AsyncIterator[None]:
        """Make the worktree of an agent if needed, and hold the agent's turn until the block ends."""
        async with self._slots.setdefault(agent, AgentSlot()).turn:
            await self._prepare((await self._rows(agent, 0))[0])
            yield

    async def _let_go(self, slot: AgentSlot, upper: str) -> None:
        """End a shell and a mount that write to another layer than ``upper``; remember the shell's state."""
        if slot.mount is not None and slot.mount.upper == upper:
            return
        shell = slot.shell
        if shell is not None and not shell.over:
            slot.kept = (await shell.run(_KEEP, _MOMENT)).code == 0
            why = _KEPT_UP_TO_HERE if self.places is not None and self.places.keep_turns else _FORKED
            await self._end(slot, shell, f"{why}, {_RESTARTED}" if slot.kept else why)
        slot.close()

    async def _launch(self, agent: str, slot: AgentSlot, rows: TreeRows | None) -> FencedStart:
        """Return an object that starts programs of an agent. The agent's earlier mount is closed."""
        held, places = self.enclosure, self.places
        assert held is not None
        slot.close()
        if rows is None or places is None:
            return held.launch(agent)
        if rows[0][0].kind == WORKTREE:
            return self.worktrees.launch(agent, rows[0][0])
        stack: Stack = await in_thread(lambda: places.stack(rows), "ikigai-trees")
        return held.launch(agent, str(places.directory), stack.layers)

    def _keep(self, slot: AgentSlot, rows: TreeRows | None, handed: list[int]) -> None:
        if rows is not None and rows[0][0].kind != WORKTREE:
            [directory, namespace] = handed
            slot.mount = Mount(f"{rows[0][0].agent}/{rows[0][0].upper}", directory, namespace)
            handed.clear()

    async def leave(self, agent: str) -> None:
        """End the shell of an agent, and forget the agent."""
        slot = self._slots.pop(agent, None)
        if slot is None:
            return
        if slot.shell is not None:
            await self._end(slot, slot.shell, "the agent has ended")
        async with slot.turn:  # a tool on a thread that nobody waits for any more may still be at it
            slot.close()
        if (held := self.enclosure) is not None:
            await in_thread(lambda: held.leave(agent), "ikigai-fence")

    async def close(self) -> None:
        """End all shells."""
        if self._living:
            await asyncio.wait([shell.stop() for shell in self._living])
        for slot in self._slots.values():
            if not slot.turn.locked():
                slot.close()
        if self.enclosure is not None:
            await in_thread(self.enclosure.close, "ikigai-fence")

    def _rest_later(self, slot: AgentSlot) -> None:
        """Close the agent's shell and mount after the idle time, unless it makes a further call before."""
        if slot.idle is not None:
            slot.idle.cancel()
        slot.idle = asyncio.get_running_loop().call_later(self._idle, self._rest, slot)

    def _rest(self, slot: AgentSlot) -> None:
        if slot.turn.locked():
            self._rest_later(slot)
            return
        if slot.shell is not None:
            self._end(slot, slot.shell, f"the one before was closed after {self._idle:g} s without a call")
        slot.close()

    def _end(self, slot: AgentSlot, shell: Bash, why: str) -> "asyncio.Future[None]":
        """Begin to end a shell. The caller that waits for the end may be cancelled."""
        slot.shell, slot.last_end = None, f"; {why}"
        if slot.idle is not None:
            slot.idle.cancel()
        ending = shell.stop()
        ending.add_done_callback(lambda _: self._living.discard(shell))
        return asyncio.shield(ending)


def _reply() -> int:
    """Return the position of the reply whose call is being carried out; 0 if there is no call."""
    call = acting_call.get(None)
    return 0 if call is None else call.reply


def _checked(places: TreePlaces, rows: TreeRows) -> TreeRows:
    """Return the tree of the acting agent. Raises `ToolError` if the agent is a trial without a tree here."""
    call = acting_call.get(None)
    if call is not None and call.own_files and not rows[0]:
        raise ToolError(
            f"This trial has files of its own, but not over {places.base}. Ask the person to go on with the workspace "
            "with which the experiment began."
        )
    return rows


class SeenByAgent(Tool):
    """A tool that sees the directory as the acting agent does, through layers or as a worktree."""

    def __init__(self, tool: FunctionTool, shells: Shells) -> None:
        self.wrapped, self._shells = tool, shells

    @property
    def name(self) -> str:
        return self.wrapped.name

    @property
    def timeout(self) -> float:
        return self.wrapped.timeout

    @property
    def traits(self) -> ToolTraits:
        return self.wrapped.traits

    @property
    def is_async(self) -> bool:
        return self.wrapped.is_async

    def describe(self) -> Mapping[str, Any]:
        return self.wrapped.describe()

    def call(self, arguments: Mapping[str, Any]) -> Result:
        try:
            with self._shells.holding(self.wrapped.timeout, not self.traits.read_only) as news:
                return _after(news, self.wrapped.call(arguments))
        except (ToolError, IkigaiError) as error:  # the second: its tree cannot be read
            return Result(str(error), True)

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        try:
            async with self._shells.holding_here(not self.traits.read_only) as news:
                return _after(news, await self.wrapped.call_async(arguments))
        except (ToolError, IkigaiError) as error:
            return Result(str(error), True)


LayOut = Callable[[Sequence[Mapping[str, Any]]], object]
"""A function that writes the files of skills to the disk for commands. Blocks, and may raise `ToolError`."""


def bash_tool(shells: Shells, lay_out: LayOut = lambda skills: None) -> FunctionTool:
    """Return the tool that runs commands in these shells.

    ``lay_out`` is called before each command, with the skills of the agent.
    """
    from pydantic import Field

    @tool(timeout=QUEUED, policy=Policy.ASK)
    async def bash(
        command: str,
        timeout: Annotated[float, Field(ge=1, le=_LONGEST)] = TIMEOUT,
    ) -> Result:
        """Run a command in your bash shell, which begins in the working directory. Directory, variables and background
        jobs stay from call to call; your calls take turns. Standard input is empty. The result is what the command
        prints, and its exit code unless that is 0.

        Args:
            command: the command, of any number of lines.
            timeout: seconds after which it is ended, and the shell with it.
        """  # noqa: D205 - one paragraph, as the model reads it
        if "\0" in command:
            return Result("A command cannot hold a NUL character: bash would leave it out.", True)
        if skills := acting_skills.get():
            await in_thread(lambda: lay_out(skills), "ikigai-skills")
        return await shells.run(current_acting_agent().uuid, command, timeout)

    if shells.enclosure is None:
        return bash
    return replace(bash, description=f"{bash.description}\n\n{shells.enclosure.described}")


def _after(news: str, result: Result) -> Result:
    return replace(result, content=f"{news}\n{result.content}") if news else result


def _result(news: str, ran: CommandOutput, note: str) -> Result:
    cut = f"[cut: {ran.dropped} bytes before this]" if ran.dropped else ""
    parts = (news, cut, ran.output.rstrip("\n"), note and f"[{note}]")
    return Result("\n".join(part for part in parts if part), bool(note))
