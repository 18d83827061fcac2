"""The events of a system for its subscribers: committed messages, deltas, mail, and trouble with the store and tools.

Each subscriber has a thread and a queue of its own, so a slow one delays no other. Its callback gets events in the
order in which they happened. When it is too slow, deltas are dropped and counted; messages never are.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeVar, get_args

from ikigai_actors.actors.closing import (
    ClosedByBlock,
    ClosingStep,
    carry_out,
    declare_waited_for,
    is_waited_for,
    raise_first,
)
from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.registry import Died, Renamed, StatusSet
from ikigai_actors.records.mail.mail import Mail
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.tools.definitions import ToolDifference

if TYPE_CHECKING:
    from ikigai_actors.actors.threads import Queue, Threads  # imports asyncio: who only reads events does without

logger = logging.getLogger(__name__)

_PATIENCE = 30.0
"""Seconds that a callback may take for one event when its subscription is closed."""

AS_EVENT: Mapping[str, object] = {"is_event": True}
"""The ``extra`` of a log record that repeats an event, for programs without subscribers that read the log."""

_MOST_UNHEARD = 100
"""The most events about trouble with tools that are kept for the first subscriber."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """A piece of a reply that is being received. It is not stored: the finished reply comes as a message."""

    agent_uuid: str
    text: str
    kind: str
    """``text`` or ``thinking``."""
    at: int = 0
    """The position of the message that the reply continues; 0 where it is not known."""

    @property
    def agent(self) -> str:
        """The uuid of the agent."""
        return self.agent_uuid


@dataclass(frozen=True, slots=True)
class StreamCut:
    """Reports that a reply in progress at another process will not be completed.

    The host of that process is gone, or the agent has moved. The pieces that were published are void. When the turn
    goes on, a reply comes from its beginning.
    """

    kind: ClassVar[str] = "stream_cut"
    agent_uuid: str

    @property
    def agent(self) -> str:
        """The uuid of the agent."""
        return self.agent_uuid


@dataclass(frozen=True, slots=True)
class Mailed:
    """Reports that this host has committed a mail. There is no such event for mail of other processes."""

    kind: ClassVar[str] = "mailed"
    mail: Mail

    @property
    def agent(self) -> str:
        """The uuid of the recipient."""
        return self.mail.recipient


@dataclass(frozen=True, slots=True)
class PromptKept:
    """Reports that a stopped agent was prompted: its prompt waits as mail of kind ``prompt`` for the signal CONT."""

    kind: ClassVar[str] = "prompt_kept"
    agent_uuid: str
    mail: int
    """The number of the prompt among the mails of the agent."""
    text: str

    @property
    def agent(self) -> str:
        """The uuid of the agent."""
        return self.agent_uuid


@dataclass(frozen=True, slots=True)
class StoreTrouble:
    """Reports that the store has stopped answering, or answers again. Nothing is lost, because agents wait."""

    kind: ClassVar[str] = "store_trouble"
    reason: str | None
    """The reason; None when the store answers again."""
    final: bool = False
    """Whether the system has given up and closes. Open it again when the store works."""


@dataclass(frozen=True, slots=True)
class ToolTrouble:
    """A notice about a toolset or a tool, for example that its server died, or that a call hangs."""

    kind: ClassVar[str] = "tool_trouble"
    toolset: str
    """The name of the toolset or tool."""
    text: str


@dataclass(frozen=True, slots=True)
class BatchTrouble:
    """Reports that a service has not taken a batch, or does not answer about one. Published once until it answers."""

    kind: ClassVar[str] = "batch_trouble"
    service: str
    """The model whose requests wait, as ``provider:model``."""
    batch: str
    """The id of the batch in the table ``batches``."""
    text: str


@dataclass(frozen=True, slots=True)
class WindowNearlyFull:
    """Warns that a request nearly fills its model's window, or that system prompt and tools take a third of it.

    The first warning is published once a turn, for a request that is sent without a summary; the second once for each
    model.
    """

    kind: ClassVar[str] = "window_nearly_full"
    agent_uuid: str
    label: str
    """The name of the agent, for people."""
    tokens: int
    """The approximate number of tokens of the request."""
    window: int
    """The size of the model's window, in tokens."""
    fixed: int = 0
    """The approximate number of tokens of the system prompt and the tools, which no summary can reduce."""

    @property
    def agent(self) -> str:
        """The uuid of the agent."""
        return self.agent_uuid


@dataclass(frozen=True, slots=True)
class HookFailed:
    """Reports that a hook has failed, and on which call, request or reply it was to decide."""

    kind: ClassVar[str] = "hook_failed"
    agent_uuid: str
    label: str
    """The agent, as a person knows it."""
    hook: str
    """The name."""
    event: str
    """The event about which it was asked."""
    text: str
    """Why."""
    denied: bool
    """Whether what it was asked about was denied, or its text withheld."""

    @property
    def agent(self) -> str:
        """The uuid of the agent."""
        return self.agent_uuid


@dataclass(frozen=True, slots=True)
class HostChanged:
    """Reports that another process runs the agents from now on, or that none does. Only attached systems publish it."""

    kind: ClassVar[str] = "host_changed"
    host: str | None
    """A description of the new host, for people; None if no process runs the agents."""
    former: str = field(default="", compare=False)
    """A description of the host before, for people; empty when there was none."""


@dataclass(frozen=True, slots=True)
class HostEnded:
    """Reports that one of several hosts has ended or died. The other hosts take over its agents."""

    kind: ClassVar[str] = "host_ended"
    host: str
    """The name of the host that has ended."""
    agents: int
    """The number of agents that it ran, as it last reported."""
    heirs: tuple[str, ...]
    """The names of the living hosts."""


@dataclass(frozen=True, slots=True)
class HostsDiffer:
    """Reports that hosts which share the agents have different tools, or have the same tools again."""

    kind: ClassVar[str] = "hosts_differ"
    tools: tuple[ToolDifference, ...]
    """The tools in which the hosts differ; empty when all are the same again."""


SystemTrouble = (
    StoreTrouble | ToolTrouble | BatchTrouble | WindowNearlyFull | HookFailed | HostChanged | HostEnded | HostsDiffer
)
"""The events that a person should know of, besides those of agents. Every front end shows them."""

Event = Message | Streamed | StreamCut | Mailed | PromptKept | Died | Renamed | StatusSet | SystemTrouble
Callback = Callable[[Event], object]
CALLBACK = "a function that takes an event"
EventTypes = tuple[type, ...]
OF_AGENTS = (Message, Streamed, StreamCut, Mailed, PromptKept, Died, Renamed, StatusSet)


def is_no_event(record: logging.LogRecord) -> bool:
    """Return whether a log record is to be shown although events are shown: False if it repeats an event.

    Front ends use it as a filter of `logging`.
    """
    return not getattr(record, "is_event", False)


def check_events(only: object) -> EventTypes:
    """Check that a value is a tuple of event types, and return it. Raises `BadInput`."""
    kinds = get_args(Event)
    if not isinstance(only, tuple) or not all(kind in kinds for kind in only):
        raise BadInput(
            f"Expected only to be a tuple of types of events, such as (Message, HostEnded); got {shown(only)}."
        )
    return only


class Subscriber(ABC):
    """A receiver of events, of all types or of some."""

    def __init__(self, callback: Callback, on_close: Callable[["Subscriber"], None], only: EventTypes) -> None:
        self._callback, self._on_close, self._only = callback, on_close, only
        self._over = False
        self._ended: Callable[[], object] = lambda: None

    @abstractmethod
    def add(self, event: Event) -> None:
        """Take an event, if it has a type that the subscriber wants. Never waits."""

    @abstractmethod
    def close(self) -> None:
        """End the subscription: events that come later are ignored."""

    def asks_for(self, kind: type) -> bool:
        """Return whether the subscriber wants events of this type."""
        return not self._only or issubclass(kind, self._only)

    @property
    def is_of_agents(self) -> bool:
        """Whether the subscriber wants events of agents."""
        return not self._only or any(issubclass(kind, OF_AGENTS) for kind in self._only)

    @property
    def is_of_replies(self) -> bool:
        """Whether the subscriber wants the pieces of replies in progress."""
        return not self._only or any(issubclass(kind, Streamed) for kind in self._only)

    def on_end(self, call: Callable[[], object]) -> None:
        """Call the function ``call`` after the last event of the subscription."""
        self._ended = call
        if self._over:
            call()


class DirectSubscription(Subscriber):
    """A subscriber whose callback never waits. The publishing thread calls the callback."""

    def add(self, event: Event) -> None:
        if not self._over and self.asks_for(type(event)):
            self._callback(event)

    def close(self) -> None:
        self._on_close(self)
        self._over = True
        self._ended()


S = TypeVar("S", bound=Subscriber)


class Subscription(ClosedByBlock, Subscriber):
    """A subscriber with its own thread and queue. Close it to receive no more events."""

    def __init__(
        self,
        callback: Callback,
        capacity: int,
        on_close: Callable[[Subscriber], None],
        threads: "Threads",
        patience: float,
        only: EventTypes = (),
    ) -> None:
        super().__init__(callback, on_close, only)
        self._capacity, self._patience = capacity, patience
        self._delivered = 0
        # The light queue: a delta is one entry, and waking the thread for it is most of what the delta costs.
        self._events: Queue[Event | None] = threads.queue()
        self._dropping = threading.Lock()
        self.dropped = 0
        """Deltas that were dropped because the callback was too slow."""
        self._thread = threads.thread(self._run, "ikigai-subscriber")
        self._thread.start()

    def add(self, event: Event) -> None:
        """Queue an event, if the subscriber wants its type. When the queue is full, deltas are dropped."""
        if not self.asks_for(type(event)):
            return
        if isinstance(event, Streamed) and self._events.qsize() >= self._capacity:
            with self._dropping:
                self.dropped += 1
            return
        self._events.put(event)

    def close(self) -> None:
        """Deliver the queued events, then stop. A call from the callback itself does not wait.

        Raises `TimedOut` when the callback works on one event for too long. The callback then runs on.
        """
        self._on_close(self)
        self._events.put(None)
        while not (self._over or is_waited_for()):
            before = self._delivered
            self._thread.join(self._patience)
            if not self._over and self._delivered == before:
                from ikigai_actors.actors.futures import TimedOut  # imports asyncio, see above

                raise TimedOut(
                    f"The callback {self._callback!r} was at one event for {self._patience:g} s. Let it return."
                )

    def _run(self) -> None:
        declare_waited_for()
        while (event := self._events.get()) is not None:
            try:
                self._callback(event)
            except BaseException:  # the user's code: it must not keep the later events from itself
                logger.exception("A subscriber failed on %r", event)
            self._delivered += 1
        self._over = True
        self._ended()


class Publisher:
    """Passes every event on to all subscribers."""

    def __init__(self, threads: "Threads", patience: float = _PATIENCE) -> None:
        self._threads, self._patience = threads, patience
        self._subscriptions: tuple[Subscriber, ...] = ()
        self._left: list[ClosingStep] = []
        self._unheard: list[ToolTrouble] = []
        self._lock = threading.Lock()

    def subscribe(self, callback: Callback, capacity: int = 10_000, only: EventTypes = ()) -> Subscription:
        """Call ``callback`` for each event that is published after this.

        Beyond ``capacity`` queued events, deltas are dropped. The first subscriber also gets earlier trouble with tools
        that nobody has received, for example while the system was opened.

        Args:
            callback: takes an event.
            capacity: the most events that may wait for the callback.
            only: the types of events that the callback gets; empty for all.
        """
        return self._begin(Subscription(callback, capacity, self._forget, self._threads, self._patience, only))

    def listen(self, callback: Callback, only: EventTypes = ()) -> DirectSubscription:
        """Subscribe a callback that never waits. The publishing threads call it, perhaps several at once."""
        return self._begin(DirectSubscription(callback, self._forget, only))

    def _begin(self, subscription: S) -> S:
        with self._lock:
            self._subscriptions = (*self._subscriptions, subscription)
            if subscription.asks_for(ToolTrouble):
                for trouble in self._unheard:
                    subscription.add(trouble)
                self._unheard.clear()
        return subscription

    @property
    def is_heard(self) -> bool:
        """Whether there is a subscriber."""
        return bool(self._subscriptions)

    @property
    def is_heard_of_agents(self) -> bool:
        """Whether a subscriber wants events of agents."""
        return any(subscription.is_of_agents for subscription in self._subscriptions)

    @property
    def is_heard_of_replies(self) -> bool:
        """Whether a subscriber wants the pieces of replies in progress."""
        return any(subscription.is_of_replies for subscription in self._subscriptions)

    def publish(self, event: Event) -> None:
        """Pass an event to every subscriber that wants its type. Never waits."""
        if isinstance(event, ToolTrouble):
            with self._lock:
                if not any(listener.asks_for(ToolTrouble) for listener in self._subscriptions):
                    self._unheard = [*self._unheard[1 - _MOST_UNHEARD :], event]
                    return
        for subscription in self._subscriptions:
            subscription.add(event)

    def close(self) -> None:
        """Deliver the queued events, and end all subscriptions, even if one fails. Raises the first error."""
        self._left.extend(("a subscription", subscription.close) for subscription in self._subscriptions)
        raise_first(carry_out(self._left))

    def _forget(self, subscription: Subscriber) -> None:
        with self._lock:
            self._subscriptions = tuple(other for other in self._subscriptions if other is not subscription)
