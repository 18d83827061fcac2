"""The inbox of an actor without a thread, which is also the stopped flag that Pykka reads.

- Messages of one sender keep their order. *Urgent* ones (signals, completions) overtake the others.
- While the inbox is *held* it gives out nothing; the message of the release is then the first.
- It is bounded for ordinary messages: a full one refuses with `InboxFull`. Urgent ones are never refused, nor is
  Pykka's stop. Senders on several threads may pass the bound together, by one message each.
- Once *closed* it gives out nothing: messages in it, and later ones, are handed to ``actor.refuse``.

The inbox takes few locks. ``put`` appends and wakes the actor if it is not scheduled; only the change from idle to
scheduled takes a lock. A worker that finds the inbox empty sets it idle *and then checks again*, so no message that
came in between is lost. ``put`` checks ``closed`` *after* it has appended, so a message that comes during a death is
answered by the sender's thread or by the dying actor.
"""

import threading
from collections import deque
from contextlib import suppress
from typing import Any, Protocol

from pykka.messages import _ActorStop

from ikigai_actors.errors import InboxFull

INBOX_CAPACITY = 10_000
"""The most ordinary messages in an inbox."""


class Envelope(Protocol):
    """A message as Pykka puts it into an inbox, with the future for its answer."""

    message: Any
    reply_to: Any


class Schedulable(Protocol):
    """The owner of an inbox: an actor that a dispatcher runs."""

    def wake(self) -> None:
        """Schedule the actor. The inbox calls this once, and again only after `Inbox.rest` has returned False."""

    def refuse(self, envelope: Envelope) -> None:
        """Answer a message that will never be handled."""


class Inbox:
    """The queue of one actor. Any thread may put; one thread at a time takes."""

    __slots__ = ("_lock", "_owner", "closed", "held", "ordinary", "scheduled", "urgent")

    def __init__(self, owner: Schedulable) -> None:
        """Make the inbox of an actor. Only the inbox keeps the actor alive: Pykka's references are weak."""
        self._owner = owner
        self._lock = threading.Lock()
        self.ordinary: deque[Envelope] | None = None
        """The ordinary messages that wait; made when first needed: an empty deque is 0.8 KB."""
        self.urgent: list[Envelope] = []
        """The urgent ones, few at a time."""
        self.closed = False
        """Whether the actor is dead."""
        self.held = False
        """Whether the actor waits for a release."""
        self.scheduled = False
        """Whether the actor waits for a worker, or has one."""

    def put(self, envelope: Envelope, /) -> None:
        """Add an ordinary message. Raises `InboxFull`."""
        ordinary = self.ordinary if self.ordinary is not None else self._made()
        if len(ordinary) >= INBOX_CAPACITY and not isinstance(envelope.message, _ActorStop):
            raise InboxFull(f"{self._owner} has {INBOX_CAPACITY} messages waiting; let it handle some first.")
        ordinary.append(envelope)
        if not self.scheduled:
            self._wake()
        if self.closed:
            self.drain()

    def put_urgent(self, message: Any, *, first: bool = False) -> None:
        """Add a message before all ordinary ones; with ``first``, also before the urgent ones. Never refused."""
        self._add_urgent(message, first=first)
        if not self.scheduled:
            self._wake()
        if self.closed:
            self.drain()

    def release(self, message: Any) -> None:
        """End the hold of the inbox. The actor handles this message next."""
        # The message first: an actor that is released must find it before any other.
        self.urgent.insert(0, OneWay(message))
        self.held = False
        if not self.scheduled:
            self._wake()
        if self.closed:
            self.drain()

    def end_hold(self) -> None:
        """End the hold without a message. The actor runs if messages wait."""
        self.held = False
        if (self.urgent or self.ordinary) and not self.scheduled:
            self._wake()
        if self.closed:
            self.drain()

    def get(self) -> Any:
        """Remove and return the next envelope; None if no message is to be handled now."""
        if self.held:
            return None
        if self.urgent:
            return self.urgent.pop(0)
        return self.ordinary.popleft() if self.ordinary else None

    @property
    def latest(self) -> Envelope | None:
        """Return the latest ordinary message that waits; None if none waits. Any thread may call."""
        with suppress(IndexError):  # it was taken meanwhile
            return self.ordinary[-1] if self.ordinary else None
        return None

    def up_to(self, latest: Envelope | None) -> list[Envelope]:
        """Return the waiting ordinary messages up to this one, oldest first; empty if this one was taken.

        Call it only on the thread that takes messages.
        """
        waiting = list(self.ordinary.copy()) if self.ordinary and latest is not None else []
        return waiting[: waiting.index(latest) + 1] if latest in waiting else []

    def __len__(self) -> int:
        return len(self.ordinary or ()) + len(self.urgent)

    def empty(self) -> bool:
        """Return whether no message waits."""
        return not self.ordinary and not self.urgent

    def rest(self) -> bool:
        """End a worker's slice. Returns whether the actor must run again.

        After False, the next message schedules the actor.
        """
        if (self.urgent or self.ordinary) and self._can_go_on():
            return True
        self.scheduled = False
        return bool(self.urgent or self.ordinary) and self._can_go_on() and self._schedule()

    def drain(self) -> None:
        """Refuse every message that is still in a closed inbox."""
        while not self.empty():
            try:
                envelope = self.urgent.pop(0) if self.urgent else self.ordinary.popleft()  # type: ignore[union-attr]
            except IndexError:  # another thread drains too
                continue
            self._owner.refuse(envelope)

    def claim(self) -> bool:
        """Mark an idle actor as scheduled, for the calling thread; return whether the actor was idle.

        The thread must call `rest` after it has run the actor.
        """
        with self._lock:
            if self.scheduled or self.held or self.closed or not self.empty():
                return False
            self.scheduled = True
        return True

    def is_set(self) -> bool:
        """Return whether the actor has stopped. Pykka reads this as its stopped flag."""
        return self.closed

    def set(self) -> None:
        """Close the inbox. Waiting and later messages are refused."""
        self.closed = True
        self.drain()

    def _add_urgent(self, message: Any, *, first: bool) -> None:
        if first:
            self.urgent.insert(0, OneWay(message))
        else:
            self.urgent.append(OneWay(message))

    def _made(self) -> deque[Envelope]:
        with self._lock:
            if self.ordinary is None:
                self.ordinary = deque()
            return self.ordinary

    def _can_go_on(self) -> bool:
        return not (self.closed or self.held or self.empty())

    def _wake(self) -> None:
        if not self.held and self._schedule():
            self._owner.wake()

    def _schedule(self) -> bool:
        with self._lock:
            already, self.scheduled = self.scheduled, True
        return not already


class OneWay:
    """An envelope whose sender gets no answer."""

    __slots__ = ("message",)
    reply_to = None

    def __init__(self, message: Any) -> None:
        self.message = message
