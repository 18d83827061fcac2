"""The shells of a workspace, one for each agent, and the tool bash, which runs commands in them."""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from ikigai_actors.actors.futures import current_acting_agent
from ikigai_actors.actors.threads import in_thread
from ikigai_actors.tools.fence.enclosure import Enclosure
from ikigai_actors.tools.function import TIMEOUT, FunctionTool, Result, tool
from ikigai_actors.tools.policy import Policy
from ikigai_actors.tools.process import ExitWaiter
from ikigai_actors.tools.workspace.bash import Bash, CommandOutput

_LONGEST = 600.0
"""The most seconds of a command."""

BASH = shutil.which("bash") or "/bin/bash"

QUEUED = 3600.0
"""The most seconds of a call, including earlier calls of its agent that it waits for."""


class AgentSlot:
    """An agent's place in a workspace, with or without a shell."""

    def __init__(self) -> None:
        """Make a place without a shell."""
        self.turn = asyncio.Lock()
        """Held by the call that runs."""
        self.shell: Bash | None = None
        self.last_end = ""
        """Why the shell before has ended."""
        self.idle: asyncio.TimerHandle | None = None
        """The timer that closes an idle shell."""


class Shells:
    """The shells of a workspace. Everything runs on the runtime's event loop."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], idle: float, enclosure: Enclosure | None = None
    ) -> None:
        """Begin without a shell.

        Args:
            directory: where each begins.
            environment: the variables of one without a fence.
            idle: seconds without a call after which one is closed.
            enclosure: the fence around each.
        """
        self._directory, self._environment, self._idle = directory, environment, idle
        self.enclosure = enclosure
        self._slots: dict[str, AgentSlot] = {}
        self._living: set[Bash] = set()
        self._exits = ExitWaiter()

    async def run(self, agent: str, command: str, seconds: float) -> Result:
        """Run a command in the shell of an agent, when the agent's earlier calls are over."""
        slot = self._slots.setdefault(agent, AgentSlot())
        async with slot.turn:
            if slot.idle is not None:
                slot.idle.cancel()
            news = ""
            if slot.shell is None or slot.shell.over:
                news = f"[new shell in {self._directory}{slot.last_end}]"
                try:
                    slot.shell = await self._start(agent)
                except OSError as error:
                    return Result(f"A shell could not be started: {error}.", True)
                self._living.add(slot.shell)
            shell = slot.shell
            try:
                ran = await shell.run(command, seconds)
            except BaseException:
                await self._end(slot, shell, "the one before was ended with a call that was cancelled")
                raise
            if ran.code is not None:
                why = f"the one before was closed after {self._idle:g} s without a call"
                slot.idle = asyncio.get_running_loop().call_later(self._idle, self._end, slot, shell, why)
                return _result(news, ran, f"exit code {ran.code}" if ran.code else "")
            by_itself = shell.over
            await self._end(slot, shell, "the one before had ended")
            how = (
                f"the shell ended with exit code {shell.exit_code}"
                if by_itself
                else f"not finished after {seconds:g} s, so it was ended, and the shell with it"
            )
            return _result(news, ran, f"{how}; the next call gets a new shell")

    async def _start(self, agent: str) -> Bash:
        held = self.enclosure
        if held is None:
            return await Bash.start(BASH, self._directory, self._environment, self._exits)
        return await Bash.start(BASH, self._directory, held.environment(agent), self._exits, held.launch(agent))

    async def leave(self, agent: str) -> None:
        """End the shell of an agent, and forget it."""
        slot = self._slots.pop(agent, None)
        if slot is None:
            return
        if slot.shell is not None:
            await self._end(slot, slot.shell, "the agent has ended")
        if (held := self.enclosure) is not None:
            await in_thread(lambda: held.leave(agent), "ikigai-fence")

    async def close(self) -> None:
        """End them all."""
        if self._living:
            await asyncio.wait([shell.stop() for shell in self._living])
        if self.enclosure is not None:
            await in_thread(self.enclosure.close, "ikigai-fence")

    def _end(self, slot: AgentSlot, shell: Bash, why: str) -> "asyncio.Future[None]":
        """Begin to end a shell. The caller that waits for the end may be cancelled."""
        slot.shell, slot.last_end = None, f"; {why}"
        if slot.idle is not None:
            slot.idle.cancel()
        ending = shell.stop()
        ending.add_done_callback(lambda _: self._living.discard(shell))
        return asyncio.shield(ending)


def bash_tool(shells: Shells) -> FunctionTool:
    """The tool that runs commands in these shells."""
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
        return await shells.run(current_acting_agent().uuid, command, timeout)

    if shells.enclosure is None:
        return bash
    return replace(bash, description=f"{bash.description}\n\n{shells.enclosure.described}")


def _result(news: str, ran: CommandOutput, note: str) -> Result:
    """The text that the model reads."""
    cut = f"[cut: {ran.dropped} bytes before this]" if ran.dropped else ""
    parts = (news, cut, ran.output.rstrip("\n"), note and f"[{note}]")
    return Result("\n".join(part for part in parts if part), bool(note))
