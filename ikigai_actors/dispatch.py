"""Actors without threads of their own: a few workers run the inboxes of many.

`PooledActor` is a Pykka actor through and through (``tell``, ``ask``, ``stop``, hooks), but its inbox schedules it on a
`Dispatcher` when there is something to do. Rules:

- One message at a time per actor, in order of arrival; a worker takes at most a quantum of messages before the next
  actor's turn.
- *Urgent* messages (signals, completions) overtake the others.
- An actor that is *held* gets no message until it is released, and then first the message of the release.
- The inbox is bounded for ordinary messages: a full one refuses with `InboxFull`. Urgent ones are never refused.
- When the actor stops or dies, its inbox closes: what was still in it, and what comes later, is answered with
  `ActorGone`.
- A handler that raises under ``ask`` answers its caller and the actor lives; under ``tell`` the actor dies and
  ``on_failure`` runs.

Actors stay out of Pykka's global registry, from which removing one of 100,000 takes milliseconds, and an inbox is its
own "stopped"
flag: ``is_set`` is all that Pykka asks of it.

The inbox is light on locks. ``put`` appends and wakes the actor if it is not scheduled; only the change from idle to
scheduled takes a lock. A worker that finds the inbox empty sets it idle *and then looks again*, so a message that came
in between is not left behind; ``put`` looks at ``closed`` *after* it appended, so a message that meets a death is
answered by one of the two.
"""

import logging
import queue
import sys
import threading
from collections import deque
from types import TracebackType
from typing import Any, Protocol, Self

import pykka
from pykka.messages import _ActorStop

from ikigai_actors.errors import AgentDead, IkigaiError
from ikigai_actors.futures import Future, forbid_blocking

logger = logging.getLogger(__name__)

QUANTUM = 50
"""Messages that an actor may handle before the next one's turn."""

CAPACITY = 10_000
"""Ordinary messages that an inbox holds."""


class ActorGone(AgentDead, pykka.ActorDeadError):
    """The actor stopped before it handled the message."""


class InboxFull(IkigaiError):
    """The actor has too many messages waiting; wait for some of them to be handled."""


class Envelope(Protocol):
    """What Pykka puts into an inbox."""

    message: Any
    reply_to: Any


class Dispatcher(Protocol):
    """Decides when which actor runs."""

    def schedule(self, actor: "PooledActor") -> None:
        """The actor has something to do; it is not scheduled already."""

    def close(self) -> None:
        """Let what is ready now be finished, then run nobody any more."""


class Inbox:
    """The queue of one actor: what Pykka calls inbox, and its stopped flag in one."""

    __slots__ = ("_actor", "_lock", "_ordinary", "_urgent", "closed", "held", "scheduled")

    def __init__(self) -> None:
        self._actor: PooledActor
        self._lock = threading.Lock()
        self._ordinary: deque[Envelope] = deque()
        self._urgent: deque[Envelope] | None = None  # made when first needed: an empty deque is 0.8 KB
        self.closed = False
        self.held = False
        self.scheduled = False

    def attach(self, actor: "PooledActor") -> None:
        """Name the actor to schedule. Nothing else keeps it alive: Pykka's references are weak."""
        self._actor = actor

    def put(self, envelope: Envelope, /) -> None:
        """Add an ordinary message. Raises `InboxFull`."""
        if len(self._ordinary) >= CAPACITY and not isinstance(envelope.message, _ActorStop):
            raise InboxFull(f"{self._actor} has {CAPACITY} messages waiting; let it handle some first.")
        self._ordinary.append(envelope)
        self._wake()
        if self.closed:
            self.drain()

    def put_urgent(self, message: Any, *, first: bool = False) -> None:
        """Add a message that overtakes ordinary ones (``first``: and every other); never refused."""
        with self._lock:
            if self._urgent is None:
                self._urgent = deque()
        envelope = _Urgent(message)
        if first:
            self._urgent.appendleft(envelope)
        else:
            self._urgent.append(envelope)
        self._wake()
        if self.closed:
            self.drain()

    def get(self) -> Any:
        """The next message; raises `queue.Empty` when there is none to be handled now."""
        if not self.held:
            if self._urgent:
                return self._urgent.popleft()
            if self._ordinary:
                return self._ordinary.popleft()
        raise queue.Empty

    @property
    def urgent(self) -> bool:
        """Whether an urgent message waits."""
        return bool(self._urgent)

    def __len__(self) -> int:
        return len(self._ordinary) + len(self._urgent or ())

    def empty(self) -> bool:
        """Whether no message waits."""
        return not self

    def release(self, message: Any) -> None:
        """End the hold; the message is handled next."""
        # The message first: an actor that is released must find it before any other.
        with self._lock:
            if self._urgent is None:
                self._urgent = deque()
            self._urgent.appendleft(_Urgent(message))
            self.held = False
        self._wake()
        if self.closed:
            self.drain()

    def rest(self) -> None:
        """The worker has nothing more to do for the actor: let the next message schedule it."""
        self.scheduled = False
        if not self.held and not self.empty():
            self._wake()

    def _wake(self) -> None:
        if self.scheduled or self.held:
            return
        with self._lock:
            already, self.scheduled = self.scheduled, True
        if not already:
            self._actor.dispatcher.schedule(self._actor)

    def drain(self) -> None:
        """Answer whatever is left in a closed inbox."""
        for letters in (self._urgent, self._ordinary):
            while letters:
                try:
                    envelope = letters.popleft()
                except IndexError:  # another thread drains too
                    break
                self._actor.refuse(envelope)

    def is_set(self) -> bool:
        """Pykka's question to the stopped flag."""
        return self.closed

    def set(self) -> None:
        """Close the inbox; nothing that is in it or comes later is handled."""
        self.closed = True
        self.drain()


class _Urgent:
    """An envelope that nobody waits for."""

    __slots__ = ("message",)
    reply_to = None

    def __init__(self, message: Any) -> None:
        self.message = message


class PooledActor(pykka.Actor):
    """A Pykka actor that runs on a dispatcher's workers."""

    dispatcher: Dispatcher
    actor_inbox: Inbox

    def __init__(self, dispatcher: Dispatcher) -> None:
        """Set Pykka's four fields without its Event and uuid4, which would cost 1.2 KB and 6 µs; the rest is as in
        Pykka.
        """
        self.dispatcher = dispatcher
        self.actor_urn = f"urn:ikigai:{id(self):x}"
        self.actor_inbox = self._create_actor_inbox()
        self.actor_inbox.attach(self)
        self.actor_stopped = self.actor_inbox  # type: ignore[assignment]  # Pykka wants an Event, and asks it is_set() alone
        self._actor_ref = pykka.ActorRef(self)

    @classmethod
    def start(cls, *args: Any, **kwargs: Any) -> pykka.ActorRef[Self]:
        """Start an actor; see `pykka.Actor.start`. Its ``on_start`` runs on a worker, before its first message."""
        actor = cls(*args, **kwargs)
        actor._start_actor_loop()
        return actor.actor_ref

    @staticmethod
    def _create_actor_inbox() -> Inbox:
        return Inbox()

    @staticmethod
    def _create_future() -> Future[Any]:
        return Future()

    def _start_actor_loop(self) -> None:
        if type(self).on_start is not pykka.Actor.on_start:
            self.actor_inbox.put_urgent(_Start(), first=True)

    def run_slice(self, quantum: int = QUANTUM) -> None:
        """Handle up to a quantum of messages. Called by the dispatcher, on one thread at a time."""
        inbox = self.actor_inbox
        for _ in range(quantum):
            try:
                envelope = inbox.get()
            except queue.Empty:
                break
            self._handle(envelope)
            if inbox.closed:
                break
        inbox.rest()

    def _handle(self, envelope: Envelope) -> None:
        """One message, with Pykka's rules of who hears of an exception."""
        reply_to = envelope.reply_to
        try:
            answer = self.on_start() if type(envelope.message) is _Start else self._handle_receive(envelope.message)  # type: ignore[func-returns-value]  # on_start answers nobody
            if reply_to is not None:
                reply_to.set(answer)
        except Exception as error:
            if reply_to is not None:
                reply_to.set_exception((type(error), error, error.__traceback__))
            else:
                self._fail(error)
        except BaseException as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        self._handle_failure(type(error), error, error.__traceback__)
        try:
            self.on_failure(type(error), error, error.__traceback__)
        except Exception:
            logger.exception("on_failure of %s failed", self)

    def _stop(self) -> None:
        self.actor_inbox.set()
        try:
            self.on_stop()
        except Exception:
            self._handle_failure(*sys.exc_info())

    def _handle_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        logger.error("Unhandled exception in %s", self, exc_info=exception_value)
        self.actor_inbox.set()

    def refuse(self, envelope: Envelope) -> None:
        """Answer a message that will never be handled. Subclasses answer the callers in their own messages, too."""
        if envelope.reply_to is None:
            return
        if isinstance(envelope.message, _ActorStop):
            envelope.reply_to.set(None)
        else:
            gone = ActorGone(f"{self} stopped before it handled the message.")
            envelope.reply_to.set_exception((ActorGone, gone, None))


class _Start:
    """The first message of an actor that has an ``on_start``."""

    __slots__ = ()


class Workers:
    """A dispatcher with threads: N workers take actors from one ready list."""

    def __init__(self, count: int = 2) -> None:
        """Make a dispatcher; more workers than two gain nothing while one lock guards the interpreter."""
        self._ready: queue.SimpleQueue[PooledActor | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"ikigai-worker-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def schedule(self, actor: PooledActor) -> None:
        """See `Dispatcher.schedule`."""
        self._ready.put(actor)

    def close(self) -> None:
        """See `Dispatcher.close`."""
        for _ in self._threads:
            self._ready.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        forbid_blocking("a worker of the runtime")
        while (actor := self._ready.get()) is not None:
            try:
                actor.run_slice()
            except BaseException:  # a handler's SystemExit ended its actor, and must not end the worker of all others
                logger.exception("A handler of %s raised what is no Exception", actor)
