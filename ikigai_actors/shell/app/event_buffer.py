"""The feed: what the system tells, kept until the application looks. Its thread appends; the screen takes.

Of every agent the answer that is on its way is kept, so that who goes to an agent in the middle of one sees all of it.
Of the agents that have a page, committed messages too. A message that ends an answer takes the pieces of it away: from
then on it is read as that message.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ikigai_actors.agent.subscriptions import (
    Event,
    HostChanged,
    Mailed,
    PromptKept,
    StoreTrouble,
    Streamed,
    ToolTrouble,
)
from ikigai_actors.records.messages import Kind, Message
from ikigai_actors.shell.text.wording import explained, waits_for_cont
from ikigai_actors.system.ref import System

KEPT = 500
"""Messages that are kept for an agent nobody looks at; a page reads what it misses from the database."""

ENDS = (Kind.USER, Kind.ASSISTANT, Kind.RETRY, Kind.ERROR, Kind.INTERRUPTED)
"""The kinds that end an answer, or come before it."""


@dataclass(slots=True)
class News:
    """What is new about one agent, in the order in which it happened: messages, and then pieces of an answer."""

    messages: list[Message] = field(default_factory=list)
    ended: bool = False
    """Pieces that were taken earlier are obsolete: a message among these, or before them, holds the answer."""
    pieces: list[tuple[str, list[str]]] = field(default_factory=list)
    """Kind and texts; those of one kind that follow each other are one piece. Plain text, and nothing that the garbage
    collector looks at: 200 agents that stream unseen would make it stop the keyboard.
    """

    def add(self, kind: str, text: str) -> None:
        """A piece of an answer has come."""
        if not self.pieces or self.pieces[-1][0] != kind:
            self.pieces.append((kind, []))
        self.pieces[-1][1].append(text)


class Feed:
    """What happened since the application last looked."""

    def __init__(
        self, system: System, changed: Callable[[], None], committed: Callable[[Message], None] = lambda _: None
    ) -> None:
        """Subscribe. On the subscription's thread ``committed`` is given each message, and ``changed`` is called when
        something happened beside a delta.
        """
        self._system, self._changed, self._committed = system, changed, committed
        self._lock = threading.Lock()
        self._followed: set[str] = set()
        self._news: dict[str, News] = {}
        self._notices: list[str] = []
        self._subscription = system.subscribe(self.hear)

    def close(self) -> None:
        """Hear no more."""
        self._subscription.close()

    def hear(self, event: Event) -> None:
        """Take what the system tells; on the subscription's thread."""
        kept = (
            waits_for_cont(self._system.handle(event.agent_uuid), "the prompt") if isinstance(event, PromptKept) else ""
        )
        with self._lock:
            match event:
                case Streamed():
                    self._of(event.agent_uuid).add(event.kind, event.text)
                    return
                case Message():
                    self._committed(event)
                    self._take(event)
                case StoreTrouble() if event.final:
                    pass  # the application ends, with its own words
                case StoreTrouble() | ToolTrouble() | HostChanged():
                    self._notices.append(explained(event))
                case PromptKept():
                    self._notices.append(kept)
                case Mailed():
                    pass
        self._changed()

    def follow(self, uuid: str) -> None:
        """Keep the messages of an agent, from now on."""
        with self._lock:
            self._followed.add(uuid)

    def forget(self, uuid: str) -> None:
        """Keep the messages of an agent no more. What was taken of its answer cannot be taken again."""
        with self._lock:
            self._followed.discard(uuid)
            if (news := self._news.get(uuid)) is not None:
                news.messages, news.ended = [], False

    def take(self, uuid: str) -> News | None:
        """What is new about an agent; None when nothing is."""
        with self._lock:
            return self._news.pop(uuid, None)

    def notice(self, text: str) -> None:
        """Tell the person something."""
        with self._lock:
            self._notices.append(text)

    def notices(self) -> list[str]:
        """What is new for the person."""
        with self._lock:
            new, self._notices = self._notices, []
            return new

    def _of(self, uuid: str) -> News:
        if (news := self._news.get(uuid)) is None:
            news = self._news[uuid] = News()
        return news

    def _take(self, message: Message) -> None:
        uuid, ends = message.agent_uuid, message.kind in ENDS
        if uuid not in self._followed:
            if ends:
                self._news.pop(uuid, None)
            return
        news = self._of(uuid)
        news.messages.append(message)
        if ends:
            news.ended, news.pieces = True, []
        del news.messages[:-KEPT]
