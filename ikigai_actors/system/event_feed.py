"""The events of a system as an iterator, which can go on where another one ended.

    with system.events(only=(Message,)) as feed:
        for event in feed:
            print(event.agent, event.position)
            save(feed.position)
    system.events(since=saved)                  # nothing is missed, and nothing comes twice

A feed subscribes first and reads afterwards, so every event comes by one way or by both. One gate lets each pass once:

    message     its id is above that of the agent's latest one; ids in between that did not come are read
    death       the agent's first one

The position names how far the log of each living agent was passed, so it grows with their number: 30 bytes an agent.
What was missed meanwhile is read from the database. Messages of one agent come in order; those of several agents by
their times. Pieces of replies, names and trouble are not stored: of these only what happens now comes.
"""

import base64
import json
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from heapq import merge
from itertools import islice
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, cast

from ikigai_actors.actors.beside import Beside
from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.closing import ClosedByBlock
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.subscriptions import Callback, DirectSubscription, Event, Streamed
from ikigai_actors.arguments import check_type
from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.identity import is_agent_uuid
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.log.heads import Head, heads, heads_of, readable_section
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.system.remote.follower import CLOCK_MARGIN

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    E_co = TypeVar("E_co", default=Event, covariant=True)
else:
    from typing import TypeVar

    E_co = TypeVar("E_co", covariant=True)

MOST_PIECES = 10_000
"""Events that may wait for who reads them; beyond that, pieces of replies are dropped."""
_SECTION = 500
"""Messages of one agent that are read at a time."""


class EventSource(Protocol):
    """The part of a system that a feed needs."""

    _store: Store
    _clock: Clock
    _beside: Beside

    def _listen(self, callback: Callback, only: tuple[type, ...]) -> DirectSubscription:
        """Call back for each event, on the thread that publishes it."""


class EventInbox:
    """Events from the threads that publish them, for one reader. The reader waits for a future, or awaits it."""

    def __init__(self) -> None:
        self._events: deque[Event | None] = deque()
        self._lock = Lock()
        self._waiting: Future[None] | None = None

    def put(self, event: Event | None) -> None:
        """Add an event; None for the end."""
        with self._lock:
            if isinstance(event, Streamed) and len(self._events) >= MOST_PIECES:
                return
            self._events.append(event)
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.settle(None)

    def drain(self) -> list[Event | None]:
        """All that has come; never waits."""
        with self._lock:
            taken = [*self._events]
            self._events.clear()
        return taken

    def arrival(self) -> "Future[None]":
        """A future that is settled when there is something."""
        with self._lock:
            if self._waiting is None or self._waiting.done():  # an await that was cancelled
                self._waiting = Future(cancel=lambda: None)
            waiting, is_there = self._waiting, bool(self._events)
        if is_there:
            waiting.settle(None)
        return waiting


class Places:
    """How far the logs of agents were passed, and who was passed dead: the gate, and what a position is made of."""

    def __init__(self, at: int, passed: dict[str, int], dead: dict[str, int]) -> None:
        """Begin where a position says.

        Args:
            at: when it was taken, in milliseconds since 1970.
            passed: the latest message of each agent, by uuid.
            dead: when the death of each agent was passed.
        """
        self.at, self.passed, self.dead = at, passed, dead

    def passes(self, event: Event) -> bool:
        """Whether an event is new."""
        match event:
            case Message(agent_uuid=uuid, id=number):
                return number > self.passed.get(uuid, 0)
            case Died(agent_uuid=uuid):
                return uuid not in self.dead
        return True

    def note(self, event: Event, now: int) -> None:
        """Count an event as passed."""
        match event:
            case Message(agent_uuid=uuid, id=number):
                self.passed[uuid] = number
            case Died(agent_uuid=uuid):
                self.dead[uuid] = now

    def copy(self) -> "Places":
        """The same places, to be noted in by themselves."""
        return Places(self.at, {**self.passed}, {**self.dead})

    def encode(self, now: int) -> str:
        """A position: opaque text. Deaths that no later look can find are left out."""
        late = {uuid: died for uuid, died in self.dead.items() if died >= now - 2 * CLOCK_MARGIN}
        living = {uuid: place for uuid, place in self.passed.items() if uuid not in self.dead}
        text = json.dumps([now, living, late], separators=(",", ":"))
        return "1" + base64.urlsafe_b64encode(zlib.compress(text.encode())).decode()

    @staticmethod
    def decode(text: object) -> "Places":
        """The places of a position. Raises `BadInput` for another text."""
        with suppress(ValueError, TypeError, AttributeError, RecursionError, zlib.error):
            if isinstance(text, str) and text.startswith("1"):
                at, passed, dead = json.loads(zlib.decompress(base64.urlsafe_b64decode(text[1:])))
                numbers = [at, *passed.values(), *dead.values()]
                if all(type(one) is int for one in numbers) and all(map(is_agent_uuid, [*passed, *dead])):
                    return Places(at, passed, dead)
        raise BadInput("Expected since to be the position of an earlier feed, as `feed.position` gives it.")


class _Missed(NamedTuple):
    """The events from before a feed began."""

    heads: list[Head]
    """Where the logs stood as it began."""
    places: Places
    """How far that was made ready."""


class EventFeed(ClosedByBlock, Generic[E_co]):
    """Events, one after the other: an iterator, and a context manager. For one thread at a time.

    It ends when it is closed, or the system is.
    """

    def __init__(
        self, system: EventSource, agents: Collection[str] | None, only: tuple[type, ...], since: str | None
    ) -> None:
        """Subscribe, and read where every log ends. Raises `BadInput` for a wrong ``since``."""
        begun = None if since is None else Places.decode(check_type(since, str, "since", "the position of a feed"))
        self._store, self._clock, self._only = system._store, system._clock, only
        self._agents = None if agents is None else frozenset(agents)
        self._inbox = EventInbox()
        self._ready: deque[Event] = deque()
        self._over = False
        self._subscription = system._listen(self._hear, only)
        self._subscription.on_end(lambda: self._inbox.put(None))
        self._taken: deque[Event | None] = deque()
        self._missed: _Missed | None = None
        self._reading: Iterator[Event] | None = None
        try:
            self._begin(begun)
        except BaseException:
            self._subscription.close()
            raise

    @property
    def position(self) -> str:
        """Where this feed is: ``since`` of a later one, which begins after the latest event that this one gave."""
        return self._given.encode(self._clock.now_ms())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> E_co:
        while not self._ready:
            if self._over:
                raise StopIteration
            if not self.prepare():
                self._inbox.arrival().get()
        return self.pop()

    def close(self) -> None:
        """End the subscription. What was not read yet is dropped."""
        self._over = True
        self._ready.clear()
        self._subscription.close()

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self._over and not self._ready

    @property
    def has_ready(self) -> bool:
        """Whether `pop` has something to give."""
        return bool(self._ready)

    def arrival(self) -> "Future[None]":
        """A future that is settled when `prepare` has something to do."""
        return self._inbox.arrival()

    def pop(self) -> E_co:
        """The next event that is ready."""
        event = self._ready.popleft()
        self._given.note(event, self._clock.now_ms())
        return cast("E_co", event)  # the subscription and the reading have only these

    def prepare(self) -> bool:
        """Make events ready; whether there was anything to do. May read the database.

        Raises `StoreError` when the database does not answer. Nothing is lost by that: the next call goes on.
        """
        if self._missed is not None:
            self._prepare_missed(self._missed)
            return True
        self._taken += self._inbox.drain()
        if not self._taken:
            return False
        while self._taken:
            new = self._taken[0]
            if new is None:
                self._over = True
            elif self._seen.passes(new):
                for event in [*self._before(new), new]:
                    self._seen.note(event, self._clock.now_ms())
                    self._ready.append(event)
            self._taken.popleft()
        return True

    def _prepare_missed(self, missed: "_Missed") -> None:
        """Read some of what was missed. A read that failed begins again where it was."""
        reading, self._reading = self._reading or self._read_missed(missed), None
        for event in islice(reading, _SECTION):
            missed.places.note(event, self._clock.now_ms())
            self._ready.append(event)
        if self._ready:
            self._reading = reading
        else:
            self._missed = None

    def _begin(self, begun: Places | None) -> None:
        now = self._clock.now_ms()
        found = self._store.read(lambda tx: self._heads(tx, now if begun is None else begun.at))
        passed = {head.uuid: head.position for head in found if head.status != "dead"}
        dead = {head.uuid: now for head in found if head.status == "dead"}
        self._seen = Places(now, passed, dead)
        self._given = self._seen.copy() if begun is None else begun
        if begun is not None:
            self._missed = _Missed(found, begun.copy())

    def _heads(self, tx: Transaction, at: int) -> list[Head]:
        """The living, and those who may have died since."""
        return heads(tx, at - CLOCK_MARGIN) if self._agents is None else heads_of(tx, self._agents)

    def _read_missed(self, missed: "_Missed") -> Iterator[Event]:
        """The messages between some places and the heads that were found."""
        late = [head for head in missed.heads if head.uuid not in missed.places.dead]
        if self._wants(Message):
            passed = missed.places.passed
            logs = [self._log(head.uuid, passed.get(head.uuid, head.fork_message_id), head.position) for head in late]
            yield from merge(*logs, key=lambda message: message.created_at)
        for head in late:
            if head.status == "dead" and self._wants(Died):
                yield Died(head.uuid, head.exit_cause or "", head.exit_reason or "")

    def _log(self, uuid: str, start: int, end: int) -> Iterator[Message]:
        """Messages of an agent, some at a time, as far as they can be read."""
        while start < end:
            upto = min(end, start + _SECTION)
            yield from self._store.read(partial(_section, uuid, start, upto))
            start = upto

    def _before(self, event: Event) -> list[Message]:
        """The messages before an event that did not come."""
        if not isinstance(event, Message) or (passed := self._seen.passed.get(event.agent_uuid)) is None:
            return []
        return [*self._log(event.agent_uuid, passed, event.id - 1)]

    def _wants(self, kind: type) -> bool:
        return not self._only or issubclass(kind, self._only)

    def _hear(self, event: Event) -> None:
        """Take an event that concerns the agents which are asked for: of others the reader is not woken."""
        agent: Any = None if self._agents is None else getattr(event, "agent", None)
        if agent is None or self._agents is None or agent in self._agents:
            self._inbox.put(event)


def _section(uuid: str, start: int, end: int, tx: Transaction) -> list[Message]:
    return readable_section(tx, uuid, start, end).messages


class Closes(Protocol):
    """An iterator that hears events until it is closed."""

    def close(self) -> None:
        """Hear no more."""


IterT = TypeVar("IterT", bound=Closes)


class AsyncFace(Generic[IterT]):
    """An iterator of events for an asyncio program: it is opened and closed beside the event loop."""

    def __init__(self, beside: Beside, make: Callable[[], IterT]) -> None:
        """Begin to open it."""
        self._beside = beside
        self._opening = beside.read(make)

    async def __aenter__(self) -> Self:
        await self._opening
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def close(self) -> None:
        """Hear no more. What was not read yet is dropped."""
        opened = await self._opening
        await self._beside.read(opened.close)


class AsyncEventFeed(AsyncFace[EventFeed[E_co]], Generic[E_co]):
    """The same for an asyncio program: an asynchronous iterator and context manager."""

    async def __anext__(self) -> E_co:
        feed = await self._opening
        while not feed.has_ready:
            if feed.is_over:
                raise StopAsyncIteration
            if not await self._beside.read(feed.prepare):
                await feed.arrival()
        return feed.pop()

    @property
    def position(self) -> str:
        """Where this feed is; see `EventFeed.position`. Raises `BadInput` before it was entered or read from."""
        if not self._opening.done():
            raise BadInput("Expected a feed that is open: enter it by `async with`, or read from it.")
        return self._opening.get().position
