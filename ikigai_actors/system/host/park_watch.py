"""Parking in time: programs whose turns only wait give up their actors and their functions' frames.

    waits      the program has begun to wait; most waits end soon
    parked     after `PARK_AFTER` seconds, or when `MOST_UNPARKED` other programs have begun to wait since: its actor is
               asked to park the agent (`ikigai_actors.records.log.parking`), which it does if only the wait is open

An agent that is asked and cannot park is asked again when it begins to wait again.
"""

import threading
from collections.abc import Callable

from ikigai_actors.actors.clock import Clock
from ikigai_actors.system.host.processes import ProcessTable

PARK_AFTER = 60.0
"""The default number of seconds after which a waiting program is parked."""

MOST_UNPARKED = 256
"""The most programs that only wait and are not parked yet."""


class ParkWatch:
    """Parks the programs of one host that have waited for long. Any thread may report waits."""

    def __init__(
        self,
        processes: ProcessTable,
        clock: Clock,
        post: Callable[[Callable[[], object]], object],
        after: Callable[[float, Callable[[], object]], object],
        park_after: float | None,
    ) -> None:
        """Make the watch of a host.

        Args:
            post: has the thread of the supervision call a function.
            after: lets that thread call a function in this many seconds; for that thread alone.
            park_after: seconds after which a program is parked; None for never.
        """
        self._processes, self._clock, self._post, self._after = processes, clock, post, after
        self._park_after = park_after
        self._since: dict[str, float] = {}  # who waits, the longest first
        self._looks = False  # whether there will be a look
        self._lock = threading.Lock()

    def begins(self, uuid: str) -> None:
        """Note that a program begins to wait. Never waits."""
        if self._park_after is None:
            return
        with self._lock:
            self._since.pop(uuid, None)
            self._since[uuid] = self._clock.monotonic()
            oldest = next(iter(self._since)) if len(self._since) > MOST_UNPARKED else None
            if oldest is not None:
                del self._since[oldest]
            begins, self._looks = not self._looks, True
        if oldest is not None:
            self._park(oldest)
        if begins:
            self._post(self._look_later)

    def ends(self, uuid: str) -> None:
        """Note that a program no longer waits. Never waits."""
        if uuid in self._since:
            with self._lock:
                self._since.pop(uuid, None)

    def _look_later(self) -> None:
        assert self._park_after is not None
        with self._lock:
            oldest = next(iter(self._since.values()), None)
            self._looks = oldest is not None
        if oldest is not None:
            self._after(max(0.0, oldest + self._park_after - self._clock.monotonic()), self._look)

    def _look(self) -> None:
        assert self._park_after is not None
        until = self._clock.monotonic() - self._park_after
        with self._lock:
            due = [uuid for uuid, since in self._since.items() if since <= until]
            for uuid in due:
                del self._since[uuid]
        for uuid in due:
            self._park(uuid)
        self._look_later()

    def _park(self, uuid: str) -> None:
        if (actor := self._processes.get(uuid)) is not None:
            actor.park()
