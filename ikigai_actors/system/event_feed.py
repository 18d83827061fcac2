"""The events of a system as an iterator, which can go on where another one ended.

    with system.events(only=(Message,)) as feed:
        for event in feed:
            print(event.agent, event.position)
            save(feed.position)
    system.events(since=saved)                  # nothing is missed, and nothing comes twice

A feed first subscribes and then reads the database, so every event arrives by the subscription, by the database, or by
both. A filter lets each event pass once:

    message     passes if its id is above that of the agent's latest message; skipped ids in between are read
    death       passes if it is the first for the agent

The position has the latest passed message of each living agent, so it takes 30 bytes for each agent. Messages and
deaths since a position are read from the database. Messages of one agent come in order, those of several agents by
their times. Pieces of replies, new names and trouble are not stored, so only those that happen while the feed is open
come.
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
"""The most events that may wait for the reader. Beyond that, pieces of replies are dropped."""
_SECTION = 500
"""The number of messages of one agent that are read in one query."""


class EventSource(Protocol):
    """The part of a system that an event feed needs."""

    _store: Store
    _clock: Clock
    _beside: Beside

    def _listen(self, callback: Callback, only: tuple[type, ...]) -> DirectSubscription:
        """Call back for each event, on the thread that publishes it."""


class EventInbox:
    """A queue of events from the threads that publish them, for one reader.

    When the queue is long, pieces of replies are dropped.
    """

    def __init__(self) -> None:
        self._events: deque[Event | None] = deque()
        self._lock = Lock()
        self._waiting: Future[None] | None = None

    def put(self, event: Event | None) -> None:
        """Add an event; None marks the end of the feed."""
        with self._lock:
            if isinstance(event, Streamed) and len(self._events) >= MOST_PIECES:
                return
            self._events.append(event)
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.settle(None)

    def drain(self) -> list[Event | None]:
        """Take all events that have arrived; never waits."""
        with self._lock:
            taken = [*self._events]
            self._events.clear()
        return taken

    def arrival(self) -> "Future[None]":
        """Return a future that is settled as soon as the queue has an event."""
        with self._lock:
            if self._waiting is None or self._waiting.done():  # an await that was cancelled
                self._waiting = Future(cancel=lambda: None)
            waiting, is_there = self._waiting, bool(self._events)
        if is_there:
            waiting.settle(None)
        return waiting


class Places:
    """The position of an event feed: the latest message of each agent and the deaths that the feed has given.

    Each event passes once.
    """

    def __init__(self, at: int, passed: dict[str, int], dead: dict[str, int]) -> None:
        """Make the position of a feed.

        Args:
            at: when the position was taken, in milliseconds since 1970.
            passed: the id of the latest message of each agent, by uuid.
            dead: the time of each agent's death, by uuid.
        """
        self.at, self.passed, self.dead = at, passed, dead

    def passes(self, event: Event) -> bool:
        """Return whether an event is new: a message after the agent's latest, or a death that is not noted yet."""
        match event:
            case Message(agent_uuid=uuid, id=number):
                return number > self.passed.get(uuid, 0)
            case Died(agent_uuid=uuid):
                return uuid not in self.dead
        return True

    def note(self, event: Event, now: int) -> None:
        """Note that the feed has given an event."""
        match event:
            case Message(agent_uuid=uuid, id=number):
                self.passed[uuid] = number
            case Died(agent_uuid=uuid):
                self.dead[uuid] = now

    def copy(self) -> "Places":
        """Return an independent copy of the position."""
        return Places(self.at, {**self.passed}, {**self.dead})

    def encode(self, now: int) -> str:
        """Return the position as an opaque text. Deaths are left out that a later feed cannot find again."""
        late = {uuid: died for uuid, died in self.dead.items() if died >= now - 2 * CLOCK_MARGIN}
        living = {uuid: place for uuid, place in self.passed.items() if uuid not in self.dead}
        text = json.dumps([now, living, late], separators=(",", ":"))
        return "1" + base64.urlsafe_b64encode(zlib.compress(text.encode())).decode()

    @staticmethod
    def decode(text: object) -> "Places":
        """Read the places from the text of a position. Raises `BadInput` for any other text."""
        with suppress(ValueError, TypeError, AttributeError, RecursionError, zlib.error):
            if isinstance(text, str) and text.startswith("1"):
                at, passed, dead = json.loads(zlib.decompress(base64.urlsafe_b64decode(text[1:])))
                numbers = [at, *passed.values(), *dead.values()]
                if all(type(number) is int for number in numbers) and all(map(is_agent_uuid, [*passed, *dead])):
                    return Places(at, passed, dead)
        raise BadInput("Expected since to be the position of an earlier feed, as `feed.position` gives it.")


class _Missed(NamedTuple):
    """The messages and deaths between the ``since`` position and the start of a feed, as far as not read yet."""

    heads: list[Head]
    """The ends of the logs when the feed began."""
    places: Places
    """The positions up to which the logs were read so far."""


class EventFeed(ClosedByBlock, Generic[E_co]):
    """Events, one after the other: an iterator, and a context manager. To be used by one thread at a time.

    The feed ends when it is closed, or when the system is closed.
    """

    def __init__(
        self, system: EventSource, agents: Collection[str] | None, only: tuple[type, ...], since: str | None
    ) -> None:
        """Subscribe, and read where each log ends. Raises `BadInput` for a wrong ``since``."""
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
        """The position of this feed, as a text.

        A later feed with this text as ``since`` begins after the latest event that this feed has returned.
        """
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
        """End the subscription. Events that were not read yet are dropped."""
        self._over = True
        self._ready.clear()
        self._subscription.close()

    @property
    def is_over(self) -> bool:
        """Return whether no more events will come."""
        return self._over and not self._ready

    @property
    def has_ready(self) -> bool:
        """Return whether `pop` would return an event."""
        return bool(self._ready)

    def arrival(self) -> "Future[None]":
        """Return a future that is settled when `prepare` has something to do."""
        return self._inbox.arrival()

    def pop(self) -> E_co:
        """Return the next event that is ready."""
        event = self._ready.popleft()
        self._given.note(event, self._clock.now_ms())
        return cast("E_co", event)  # the subscription and the reading have only these

    def prepare(self) -> bool:
        """Make received events ready for `pop`. Return whether there were any. May read the database.

        Raises `StoreError` when the database does not answer. No event is lost then: the next call continues.
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
        """Read a part of the missed events. After a failed read, the next call repeats that part."""
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
        heads = self._store.read(lambda tx: self._heads(tx, now if begun is None else begun.at))
        passed = {head.uuid: head.position for head in heads if head.status != "dead"}
        dead = {head.uuid: now for head in heads if head.status == "dead"}
        self._seen = Places(now, passed, dead)
        self._given = self._seen.copy() if begun is None else begun
        if begun is not None:
            self._missed = _Missed(heads, begun.copy())

    def _heads(self, tx: Transaction, at: int) -> list[Head]:
        return heads(tx, at - CLOCK_MARGIN) if self._agents is None else heads_of(tx, self._agents)

    def _read_missed(self, missed: "_Missed") -> Iterator[Event]:
        """Iterate over the missed messages of each agent, up to the head of its log."""
        late = [head for head in missed.heads if head.uuid not in missed.places.dead]
        if self._wants(Message):
            passed = missed.places.passed
            logs = [self._log(head.uuid, passed.get(head.uuid, head.fork_message_id), head.position) for head in late]
            yield from merge(*logs, key=lambda message: message.created_at)
        for head in late:
            if head.status == "dead" and self._wants(Died):
                yield Died(head.uuid, head.exit_cause or "", head.exit_reason or "")

    def _log(self, uuid: str, start: int, end: int) -> Iterator[Message]:
        """Iterate over an agent's messages in a range of ids, read in sections; ends at an unreadable message."""
        while start < end:
            upto = min(end, start + _SECTION)
            yield from self._store.read(partial(_section, uuid, start, upto))
            start = upto

    def _before(self, event: Event) -> list[Message]:
        """Return the messages of an agent that came before an event, and that the subscription did not deliver."""
        if not isinstance(event, Message) or (passed := self._seen.passed.get(event.agent_uuid)) is None:
            return []
        return [*self._log(event.agent_uuid, passed, event.id - 1)]

    def _wants(self, kind: type) -> bool:
        return not self._only or issubclass(kind, self._only)

    def _hear(self, event: Event) -> None:
        """Put a published event into the queue, unless its agent is not one of the feed's agents."""
        agent: Any = None if self._agents is None else getattr(event, "agent", None)
        if agent is None or self._agents is None or agent in self._agents:
            self._inbox.put(event)


def _section(uuid: str, start: int, end: int, tx: Transaction) -> list[Message]:
    return readable_section(tx, uuid, start, end).messages


class Closes(Protocol):
    """An iterator of events that can be closed."""

    def close(self) -> None:
        """Stop receiving events."""


IterT = TypeVar("IterT", bound=Closes)


class AsyncFace(Generic[IterT]):
    """The asyncio version of an iterator of events. It is opened and closed without blocking the event loop."""

    def __init__(self, beside: Beside, make: Callable[[], IterT]) -> None:
        """Call ``make``, which opens the iterator, on another thread."""
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
        """Stop receiving events. Events that were not read yet are dropped."""
        opened = await self._opening
        await self._beside.read(opened.close)


class AsyncEventFeed(AsyncFace[EventFeed[E_co]], Generic[E_co]):
    """An event feed for an asyncio program: an asynchronous iterator and context manager."""

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
        """The position of this feed; see `EventFeed.position`.

        Raises `BadInput` before the first event was asked for.
        """
        if not self._opening.done():
            raise BadInput("Expected a feed that is open: enter it by `async with`, or read from it.")
        return self._opening.get().position
