"""Actors without threads of their own.

`PooledActor` is a complete Pykka actor (``tell``, ``ask``, ``stop``, hooks), but its `Inbox` schedules it on a
`Dispatcher` when a message comes.

- An actor handles one message at a time, and at most a quantum of them before the next actor's turn.
- A handler that raises under ``ask`` answers its caller, and the actor lives. Under ``tell`` the actor dies. A
  `BaseException` (``SystemExit``) ends the actor in both cases, and goes on to the dispatcher.
- A death, whatever its cause, runs ``on_stop`` or ``on_failure`` and then ``on_death``, once. All messages that wait,
  and all that come later, are answered with `ActorGone`.

Actors stay out of Pykka's global registry, from which removing one of 100,000 takes milliseconds. The inbox is its own
"stopped" flag: Pykka asks nothing of that flag but ``is_set``.
"""

import logging
import queue
from collections.abc import Callable
from typing import Any, Protocol, Self

import pykka
from pykka.messages import ProxyCall, ProxyGetAttr, ProxySetAttr, _ActorStop

from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.inbox import Envelope, Inbox, OneWay
from ikigai_actors.errors import AgentDead

logger = logging.getLogger(__name__)

QUANTUM = 50
"""Messages that an actor may handle before the next one's turn."""


AsideCall = Callable[[], Callable[[], object] | None]
"""A call that may block. It runs without a place, and returns a function that the worker then calls at its place, where
nothing may block; or None."""


class ActorGone(AgentDead, pykka.ActorDeadError):
    """The error when an agent has died, or has left this host, before it had handled a message."""


class Dispatcher(Protocol):
    """Decides which actor runs when, and on which thread."""

    def schedule(self, actor: "PooledActor") -> None:
        """Put the actor into the list of actors that have something to do. The actor must not be in that list yet."""

    @property
    def ready(self) -> int:
        """Return the number of actors that have something to do and wait for a worker."""

    def step_aside(self, call: "AsideCall", name: str) -> bool:
        """Let the calling worker run a call that may block, once its slice is over.

        The worker gives up its place among the running workers while it runs the call.

        Args:
            call: the call. It must not raise.
            name: the name that the worker's thread has during the call.

        Returns:
            Whether the worker will run the call. False if the calling thread is no worker, if the worker already has
            a call to run, or if this dispatcher lets no worker block.
        """
        return False

    def lends(self, actor: "PooledActor") -> bool:
        """Claim an idle actor for the calling thread; return whether it was idle.

        The thread must then call `run_here`.
        """
        return False

    def run_here(self, actor: "PooledActor", message: object) -> object:
        """Let a claimed actor handle a message on the calling thread; return its answer, or raise the handler's error.

        Raises:
            ActorGone: the handler raised an exception that is no `Exception`, which ended the actor.
        """
        return actor.on_receive(message)

    def close(self) -> None:
        """Let each actor that has something to do run once more; then run no actor any more."""


class PooledActor(pykka.Actor):
    """A Pykka actor that a dispatcher runs."""

    dispatcher: Dispatcher
    actor_inbox: Inbox
    serves_callers = True
    """Whether a thread that asks may run the actor itself."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        """Set Pykka's four fields as Pykka does, but without its Event and uuid4.

        Those two would cost 1.2 KB and 6 µs for each actor.
        """
        self.dispatcher = dispatcher
        self.actor_urn = f"urn:ikigai:{id(self):x}"
        self.actor_inbox = Inbox(self)
        self.actor_stopped = self.actor_inbox  # type: ignore[assignment]  # Pykka wants an Event, and asks it is_set() alone
        self._actor_ref = _Ref(self)

    @classmethod
    def start(cls, *args: Any, **kwargs: Any) -> pykka.ActorRef[Self]:
        """Start an actor; see `pykka.Actor.start`. Its ``on_start`` runs on a worker, before its first message."""
        actor = cls(*args, **kwargs)
        actor._start_actor_loop()
        return actor.actor_ref

    def on_crash(self, reason: BaseException) -> None:
        """Handle a failure of a message handler, once, while the actor still takes messages.

        The handler can make an actor that replaces this one, before anybody finds this one dead.

        Args:
            reason: the exception of the handler or of ``on_start``.
        """

    def on_death(self, reason: BaseException | None) -> None:
        """Handle the death of the actor, once, before any waiting caller gets its answer.

        The actor calls this after ``on_stop`` or ``on_failure``.

        Args:
            reason: the exception of a handler or of ``on_start``; None when the actor was stopped.
        """

    @staticmethod
    def _create_actor_inbox() -> Inbox:
        # Pykka's hook is static and so cannot name the actor; __init__ makes the inbox, and nobody calls this.
        raise NotImplementedError("the inbox knows its actor, which makes it")

    @staticmethod
    def _create_future() -> Future[Any]:
        return Future()

    def _start_actor_loop(self) -> None:
        if type(self).on_start is not pykka.Actor.on_start:
            self.actor_inbox.put_urgent(_Start(), first=True)

    def wake(self) -> None:
        """Let the dispatcher run the actor; its inbox calls this."""
        self.dispatcher.schedule(self)

    def deliver(self, message: object) -> bool:
        """Send the actor a message; return False if the actor is dead and will not handle it."""
        inbox = self.actor_inbox
        if inbox.closed:
            return False
        inbox.put(OneWay(message))
        return True

    def run_slice(self, quantum: int = QUANTUM) -> bool:
        """Handle up to ``quantum`` messages; return whether the dispatcher must run the actor again.

        The dispatcher calls this on one thread at a time. Raises only an exception that is no `Exception`, which has
        ended the actor.
        """
        inbox = self.actor_inbox
        for _ in range(quantum):
            # Closed: a message that met the death of the actor woke it; its sender, or the death, answers it.
            if inbox.closed or not (inbox.urgent or inbox.ordinary) or (envelope := inbox.get()) is None:
                break
            self._handle(envelope)
        return inbox.rest()

    def _handle(self, envelope: Envelope) -> None:
        """Handle one message. As in Pykka, an exception goes to the caller of ``ask``, and otherwise ends the actor."""
        message, reply_to = envelope.message, envelope.reply_to
        try:
            answer = self.on_receive(message) if type(message) not in _NOT_OURS else self._handle_receive(message)
        except Exception as error:
            if reply_to is None:
                self._die(error)
            else:
                _answer(reply_to.set_exception, (type(error), error, error.__traceback__))
        except BaseException as error:
            self._die(error)
            self.refuse(envelope)
            raise
        else:
            if reply_to is not None:
                _answer(reply_to.set, answer)

    def _handle_receive(self, message: Any) -> Any:
        return self.on_start() if type(message) is _Start else super()._handle_receive(message)

    def _stop(self) -> None:
        self._die(None)

    def _die(self, reason: BaseException | None) -> None:
        """Run the hooks, close the inbox, and refuse the messages in it.

        If the actor is dead already, only log the reason.
        """
        if reason is not None:
            self.report(reason)
        if self.actor_inbox.closed:
            return
        if reason is not None:
            self._run_hook(self.on_crash, reason)
        self.actor_inbox.closed = True
        try:
            if reason is None:
                self._run_hook(self.on_stop)
            else:
                self._run_hook(self.on_failure, type(reason), reason, reason.__traceback__)
            self._run_hook(self.on_death, reason)
        finally:
            self.actor_inbox.drain()

    def report(self, reason: BaseException) -> None:
        """Log that the actor has crashed."""
        logger.error("Unhandled exception in %s", self, exc_info=reason)

    def _run_hook(self, hook: Callable[..., None], *arguments: Any) -> None:
        try:
            hook(*arguments)
        except Exception:  # the actor is dead already: what is left to do is to answer who waits
            logger.exception("%s of %s failed", hook.__name__, self)

    def refuse(self, envelope: Envelope) -> None:
        """Answer a message that will never be handled.

        Subclasses also answer the callers named in their own messages.
        """
        reply_to = envelope.reply_to
        if reply_to is None:
            return
        if isinstance(envelope.message, _ActorStop):
            _answer(reply_to.set, None)
        else:
            gone = ActorGone(f"{self} stopped before it handled the message.")
            _answer(reply_to.set_exception, (ActorGone, gone, None))


class _Ref(pykka.ActorRef[Any]):
    """A reference to an actor. Its caller may run the actor on its own thread while the actor is idle."""

    def ask(self, message: Any, *, block: bool = True, timeout: float | None = None) -> Any:
        if block and timeout is None and type(message) not in _NOT_OURS:
            actor = self._actor_weakref()
            if isinstance(actor, PooledActor) and actor.serves_callers and actor.dispatcher.lends(actor):
                return actor.dispatcher.run_here(actor, message)
        return super().ask(message, block=block, timeout=timeout)


class _Start:
    __slots__ = ()


_NOT_OURS = frozenset({_Start, _ActorStop, ProxyCall, ProxyGetAttr, ProxySetAttr})
"""Types of messages that are not for ``on_receive``. One look-up here replaces Pykka's four for every message."""


def _answer(give: Callable[[Any], None], value: Any) -> None:
    try:
        give(value)
    except queue.Full:  # somebody else has given the future its value
        logger.warning("An answer was dropped: its future had one already")
