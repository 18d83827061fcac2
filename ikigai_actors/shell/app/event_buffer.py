"""What the system tells, as the application shows it: what is new of a page since it was drawn.

A message that ends an answer takes the pieces of it away: from then on the answer is read as that message.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ikigai_actors.agent.subscriptions import Event, PromptKept
from ikigai_actors.records.messages import Message
from ikigai_actors.shell.event_buffer import ENDS, AnswerPiece, EventBuffer, SystemTrouble
from ikigai_actors.shell.text.wording import explained, waits_for_cont
from ikigai_actors.system.ref import System

MESSAGES_KEPT = 500
"""Messages that are kept for an agent nobody looks at; a page reads what it misses from the database."""


@dataclass(frozen=True, slots=True)
class AgentNews:
    """What is new about one agent, in the order in which it happened: messages, and then pieces of an answer."""

    messages: list[Message]
    ended: bool
    """Pieces that were taken earlier are obsolete: a message among these, or before them, holds the answer."""
    pieces: list[AnswerPiece]


class PageEvents(EventBuffer):
    """Gives what happened since the application last looked."""

    def __init__(
        self, system: System, changed: Callable[[], None], committed: Callable[[Message], None] = lambda _: None
    ) -> None:
        """Subscribe.

        Args:
            system: the system whose events are buffered.
            changed: called on the subscription's thread when an event other than a delta has come.
            committed: gets each committed message, on the subscription's thread.
        """
        self._system, self._committed = system, committed
        self._ended: set[str] = set()
        self._notices: list[str] = []
        super().__init__(system, changed)

    def hear(self, event: Event) -> None:
        if isinstance(event, Message):
            self._committed(event)
        super().hear(event)

    def forget(self, uuid: str) -> None:
        super().forget(uuid)
        with self._lock:
            self._ended.discard(uuid)

    def take(self, uuid: str) -> AgentNews | None:
        """What is new about an agent; None when nothing is."""
        with self._lock:
            if not (events := self._events.pop(uuid, None)):
                return None
            ended = uuid in self._ended
            self._ended.discard(uuid)
        messages = [event for event in events if isinstance(event, Message)]
        return AgentNews(messages, ended, [event for event in events if isinstance(event, tuple)])

    def notice(self, text: str) -> None:
        """Tell the person something."""
        with self._lock:
            self._notices.append(text)

    def notices(self) -> list[str]:
        """What is new for the person."""
        with self._lock:
            new, self._notices = self._notices, []
            return new

    def _tell(self, event: SystemTrouble | PromptKept) -> None:
        if isinstance(event, PromptKept):
            self.notice(waits_for_cont(self._system.handle(event.agent_uuid), "the prompt"))
        else:
            self.notice(explained(event))

    def _add(self, message: Message) -> None:
        """Add a message; drop the pieces that it ends, and messages beyond `MESSAGES_KEPT`."""
        super()._add(message)
        uuid, ends = message.agent_uuid, message.kind in ENDS
        if uuid not in self._followed:
            return
        if ends:
            self._ended.add(uuid)
        events = self._events[uuid]
        if ends or len(events) > MESSAGES_KEPT:
            messages = [event for event in events if isinstance(event, Message)]
            pieces = [event for event in events if isinstance(event, tuple) and not ends]
            self._events[uuid] = [*messages[-MESSAGES_KEPT:], *pieces]
