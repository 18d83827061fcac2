"""What the system tells, kept until the shell shows it. The subscription's thread fills the buffer; the shell takes.

For every agent the buffer keeps the answer that is on its way, so a person who goes to an agent in the middle of one
sees all of it. For followed agents it also keeps committed messages, in order. Line mode takes event by event
(`TurnEvents`), the application the news of a page (`PageEvents`).
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from ikigai_actors.agent.subscriptions import (
    Event,
    HostChanged,
    HostEnded,
    PromptKept,
    StoreTrouble,
    Streamed,
    ToolTrouble,
)
from ikigai_actors.records.messages import BOUNDARIES, Message
from ikigai_actors.system.ref import System

SystemTrouble = StoreTrouble | ToolTrouble | HostChanged | HostEnded
"""Events that a person should know of, beside those of agents."""

AnswerPiece = tuple[str, list[str]]
"""A part of an answer: its kind, and its texts, which follow each other. Plain text, and nothing that the garbage
collector looks at: 200 agents that stream unseen would make it stop the keyboard.
"""


class EventBuffer(ABC):
    """Subscribes to a system, and keeps its events. Thread-safe."""

    def __init__(self, system: System, changed: Callable[[], None]) -> None:
        """Subscribe.

        Args:
            system: the system whose events are kept.
            changed: called on the subscription's thread when an event other than a delta has come.
        """
        self._changed = changed
        self._lock = threading.Lock()
        self._followed: set[str] = set()
        self._events: dict[str, list[Message | AnswerPiece]] = {}
        self._subscription = system.subscribe(self.hear)

    def close(self) -> None:
        """End the subscription."""
        self._subscription.close()

    def hear(self, event: Event) -> None:
        """Take an event; on the subscription's thread."""
        match event:
            case Streamed():
                with self._lock:
                    self._add_piece(event)
                return
            case Message():
                with self._lock:
                    self._add(event)
            case StoreTrouble(final=True):
                pass  # the shell ends, with its own words
            case StoreTrouble() | ToolTrouble() | HostChanged() | HostEnded() | PromptKept():
                self._tell(event)
        self._changed()

    def follow(self, uuid: str) -> None:
        """Keep the messages of an agent from now on, behind the answer that is on its way."""
        with self._lock:
            self._followed.add(uuid)

    def forget(self, uuid: str) -> None:
        """Keep the messages of an agent no more. The part of its answer that was taken cannot be taken again."""
        with self._lock:
            self._followed.discard(uuid)
            if uuid in self._events:
                self._events[uuid] = unfinished(self._events[uuid])

    @abstractmethod
    def _tell(self, event: SystemTrouble | PromptKept) -> None:
        """Keep an event for the person; without the lock."""

    def _add_piece(self, event: Streamed) -> None:
        events = self._events.setdefault(event.agent_uuid, [])
        if events and isinstance(last := events[-1], tuple) and last[0] == event.kind:
            last[1].append(event.text)
        else:
            events.append((event.kind, [event.text]))

    def _add(self, message: Message) -> None:
        if message.agent_uuid in self._followed:
            self._events.setdefault(message.agent_uuid, []).append(message)
        elif message.kind in BOUNDARIES:
            self._events.pop(message.agent_uuid, None)


def unfinished(events: list[Message | AnswerPiece]) -> list[Message | AnswerPiece]:
    """The pieces of the answer that is on its way: those that no message has ended."""
    pieces: list[Message | AnswerPiece] = []
    for event in events:
        if isinstance(event, tuple):
            pieces.append(event)
        elif event.kind in BOUNDARIES:
            pieces.clear()
    return pieces
