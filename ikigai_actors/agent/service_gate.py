"""Queues in which requests wait until the limits of their provider let them begin (`ikigai_actors.providers.limits`).

Requests of all agents begin in the order in which they came. A waiting request needs no connection, and the time-out of
its client has not begun. So a slow service makes the queue grow, rather than many requests time out and be sent again.
A request that is interrupted leaves the queue.

Hosts that share the agents share the limits: each has an equal part, at least 1. The database says how many hosts there
are. So nothing is written before a request, a killed host occupies no part of the limits, and no host starves another.
On the other hand, a host cannot use the parts that others leave unused. If there are more hosts than requests allowed
in flight, each host still has one.
"""

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType

from ikigai_actors.actors.threads import in_thread
from ikigai_actors.errors import StoreError
from ikigai_actors.providers.limits import Limits

MINUTE = 60.0
_HOSTS_KNOWN = 5.0
"""Seconds for which the number of hosts is believed."""


def part_of(limits: Limits, hosts: int) -> Limits:
    """Return the limits for one of this many hosts: an equal part, at least 1."""
    parts = (
        (limit if limit is None else max(limit // hosts, 1)) for limit in (limits.in_flight, limits.requests_per_minute)
    )
    return Limits(*parts)


def until_next(limits: Limits, flying: int, begun: "deque[float]", now: float) -> float | None:
    """Return the seconds until a request may begin; None when another request must end first.

    Args:
        limits: the limits of this host.
        flying: the number of requests under way.
        begun: the times at which the latest requests began, oldest first.
    """
    if limits.in_flight is not None and flying >= limits.in_flight:
        return None
    if limits.requests_per_minute is None or len(begun) < limits.requests_per_minute:
        return 0.0
    return max(begun[-limits.requests_per_minute] + MINUTE - now, 0.0)


class ServiceGate:
    """A queue in which requests wait for the limits of one provider.

    Use it on the event loop, as ``async with gate:``.
    """

    def __init__(self, limits: Limits, count_hosts: Callable[[], int] | None = None) -> None:
        """Make a queue with these limits.

        Args:
            limits: the limits of all hosts together.
            count_hosts: returns the number of hosts, and may block; None if this is the only host.
        """
        self._limits = self._part = limits
        self._count_hosts, self._counted_at = count_hosts, -math.inf
        self._looking: asyncio.Task[None] | None = None
        self._knows_part = count_hosts is None
        self._flying = 0
        self._begun = deque[float](maxlen=limits.requests_per_minute or 0)
        self._waiting = deque[asyncio.Future[None]]()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """The number of requests that wait. Thread-safe."""
        return sum(not place.done() for place in tuple(self._waiting))

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        place: asyncio.Future[None] = loop.create_future()
        self._waiting.append(place)
        if self._count_hosts is not None and self._looking is None and loop.time() - self._counted_at >= _HOSTS_KNOWN:
            self._looking = loop.create_task(self._look_at_hosts(self._count_hosts))
        self._let_in()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # its turn had just come
                self._end()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._flying -= 1
        self._let_in()

    def _let_in(self) -> None:
        """Let waiting requests begin as far as the limits allow, and set a timer for the next one."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and self._knows_part:
            if self._waiting[0].cancelled():
                self._waiting.popleft()
                continue
            seconds = until_next(self._part, self._flying, self._begun, loop.time())
            if seconds is None:
                return
            if seconds > 0:
                self._timer = loop.call_later(seconds, self._let_in)
                return
            self._flying += 1
            self._begun.append(loop.time())
            self._waiting.popleft().set_result(None)

    async def _look_at_hosts(self, count_hosts: Callable[[], int]) -> None:
        """Update the number of hosts from the database. If the database does not answer, the number stays."""
        try:
            with contextlib.suppress(StoreError):
                self._part = part_of(self._limits, max(await in_thread(count_hosts, "ikigai-hosts"), 1))
        finally:
            self._looking, self._counted_at = None, asyncio.get_running_loop().time()
            self._knows_part = True
        self._let_in()


class ServiceGates:
    """The queues of all providers that have limits."""

    def __init__(self, limits: Mapping[str, Limits], count_hosts: Callable[[], int] | None = None) -> None:
        self._gates = {name: ServiceGate(each, count_hosts) for name, each in limits.items() if each}

    def before(self, provider: str) -> ServiceGate | None:
        """Return the queue of a provider; None for a provider without limits."""
        return self._gates.get(provider)

    @property
    def waiting(self) -> int:
        """The number of requests that wait in all queues together. Thread-safe."""
        return sum(gate.waiting for gate in self._gates.values())
