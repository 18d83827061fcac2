"""Ending all processes of a session: those that a shell has started, in any process group (``timeout`` makes its own).

Linux shows in /proc which session a process belongs to. Elsewhere only the process group of the session's leader is
found.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from ikigai_actors.actors.threads import in_thread

logger = logging.getLogger(__name__)

_PATIENCE = 2.0
"""Seconds between TERM and KILL, and then until a process that survives KILL is given up."""

_LOOK_AGAIN = 0.01
"""Seconds between two looks at the processes."""

_PROC = Path("/proc")


def living_processes(leaders: Collection[int]) -> dict[int, list[int]]:
    """By session leader, the arguments of `os.kill` that reach every living process of the session."""
    if not (_PROC / "self" / "stat").exists():
        return {leader: [-leader] for leader in leaders if _group_lives(leader)}
    found: dict[int, list[int]] = {}
    for place in _PROC.iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                state, _, _, session = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[:4]
                if int(session) in leaders and state not in "ZX":  # a zombie is only waited for
                    found.setdefault(int(session), []).append(int(place.name))
    return found


@dataclass(slots=True)
class _Ending:
    """A session that is being ended."""

    kill_at: float
    over: asyncio.Future[None]
    told: set[int] = field(default_factory=set)
    """The processes that were sent TERM."""


class Endings:
    """Ends sessions, however many, with the same few looks at all processes: TERM, and after `_PATIENCE` seconds KILL.

    When it is cancelled, as by a system that closes, it sends KILL at once.
    """

    def __init__(self) -> None:
        """Begin with no session to end."""
        self._endings: dict[int, _Ending] = {}
        self._work: asyncio.Task[None] | None = None

    def end(self, leader: int) -> "asyncio.Future[None]":
        """End every process of a session, on the running event loop; the future is done when they are gone."""
        loop = asyncio.get_running_loop()
        ending = self._endings.setdefault(leader, _Ending(loop.time() + _PATIENCE, loop.create_future()))
        if self._work is None:
            self._work = loop.create_task(self._end_all())
        return ending.over

    async def _end_all(self) -> None:
        now = asyncio.get_running_loop().time
        while self._endings:
            try:
                found = await in_thread(lambda: living_processes(set(self._endings)), "ikigai-ending")
                for leader, ending in list(self._endings.items()):
                    self._go_on(leader, ending, found.get(leader, []), now())
                await asyncio.sleep(_LOOK_AGAIN)
            except asyncio.CancelledError:
                for ending in self._endings.values():
                    ending.kill_at = min(ending.kill_at, now())
        self._work = None

    def _go_on(self, leader: int, ending: _Ending, left: list[int], now: float) -> None:
        given_up = now > ending.kill_at + _PATIENCE
        if left and given_up:
            logger.warning("Processes %s of a shell could not be killed", left)
        if not left or given_up:
            ending.over.set_result(None)
            del self._endings[leader]
        elif now >= ending.kill_at:
            _send(left, signal.SIGKILL)
        else:
            _send([target for target in left if target not in ending.told], signal.SIGTERM)
            ending.told.update(left)


def _send(targets: list[int], number: signal.Signals) -> None:
    for target in targets:
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is another user's
            os.kill(target, number)


def _group_lives(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except OSError:
        return False
    return True
