"""The crowd: agents that wait for mail and do nothing else, thousands of them.

They stand below a few agents of their own, so that many can be forked at once. Each is in a turn of its own: its model
calls ``wait``, reads what has come, and waits again. Its model is a provider in the worker, to spare the server.
"""

import threading
import time
from collections.abc import Iterable
from itertools import count

from ikigai_actors import ActorSystem, AgentRecord, AgentRef, Reply, Request, ToolCall
from ikigai_actors.providers.base import OnDelta

NAME = "crowd"
PARENTS = 16
_NAMES = (NAME, *(f"{NAME}-{number}" for number in range(PARENTS)))
"""The one at the top, and those below it."""
LONG = 24 * 3600
"""Seconds of a wait; nobody waits to its end."""
PATIENCE = 300.0
"""Seconds after which a crowd that does not wait is a defect."""


class Idler:
    """The crowd's model."""

    name = NAME

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Wait, then read."""
        calls = (ToolCall("wait", {"timeout": LONG}), ToolCall("read_mail"))
        return Reply("", calls, "tool_use")

    async def close(self) -> None:
        """Nothing to give back."""


class Crowd:
    """The crowd of one worker."""

    def __init__(self, system: ActorSystem, records: Iterable[AgentRecord], token: str) -> None:
        """Find those who are there already; ``token`` makes prompts unique."""
        self._system, self._token = system, token
        living = [record for record in records if record.living]
        self._named = {record.name: system.handle(record.uuid) for record in living if record.name in _NAMES}
        mine = {member.uuid for member in self._named.values()}
        parents = {member.uuid for name, member in self._named.items() if name != NAME}
        self.members = [system.handle(record.uuid) for record in living if record.supervisor_uuid in parents]
        """Those who wait."""
        self.uuids = mine | {member.uuid for member in self.members}
        """All of it."""

    def grow(self, size: int) -> None:
        """Fork until there are so many, and see that they wait. Raises `TimeoutError` when they do not."""
        if size > len(self.members):
            self._found()
        parents = [self._named[name] for name in _NAMES if name != NAME and name in self._named]
        numbers = count(1)
        while len(self.members) < size:
            batch = min(PARENTS * 8, size - len(self.members))
            forks = [
                parents[number % PARENTS].aio.fork(f"{self._token}.{next(numbers)} wait") for number in range(batch)
            ]
            born: list[AgentRef] = [fork.get(timeout=PATIENCE).sync for fork in forks]
            self.members += born
            self.uuids |= {child.uuid for child in born}
        self._until_they_wait()

    def _found(self) -> None:
        """See that those are there below whom the crowd stands: a crash may have left some of them."""
        for name in _NAMES:
            if name not in self._named:
                above = self._system.root if name == NAME else self._named[NAME]
                self._named[name] = above.fork(name=name, model=NAME, timeout=PATIENCE)
                self.uuids.add(self._named[name].uuid)

    def _until_they_wait(self) -> None:
        deadline, pause = time.monotonic() + PATIENCE, threading.Event()
        while (waits := self._system.statistics().waits) < len(self.members):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.members)} agents were told to wait; {waits} do, after {PATIENCE} s")
            pause.wait(0.05)
