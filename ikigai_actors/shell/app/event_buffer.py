"""The events of a system, as the application shows them: the news of a page since it was last drawn.

A message that ends an answer takes away the pieces of that answer: from then on the message stands for it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ikigai_actors.agent.subscriptions import Event, PromptKept
from ikigai_actors.records.messages import BOUNDARIES, Message
from ikigai_actors.shell.event_buffer import AnswerPiece, EventBuffer, SystemTrouble
from ikigai_actors.shell.text.wording import explained, waits_for_cont
from ikigai_actors.system.ref import System

MESSAGES_KEPT = 500
"""The most messages that are kept for an agent out of sight; its page reads the others from the database."""


@dataclass(frozen=True, slots=True)
class AgentNews:
    """The news about one agent, in order: messages, and then pieces of an answer."""

    messages: list[Message]
    ended: bool
    """Whether pieces that were taken earlier are obsolete: a message among these, or before them, holds the answer."""
    pieces: list[AnswerPiece]


class PageEvents(EventBuffer):
    """Gives the events since the application last looked."""

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

    def news_of(self, uuid: str) -> AgentNews | None:
        """The news about an agent; None when there is none."""
        with self._lock:
            if not (events := self._events.pop(uuid, None)):
                return None
            ended = uuid in self._ended
            self._ended.discard(uuid)
        messages = [event for event in events if isinstance(event, Message)]
        return AgentNews(messages, ended, [event for event in events if isinstance(event, tuple)])

    def notice(self, text: str) -> None:
        """Add a notice for the person."""
        with self._lock:
            self._notices.append(text)

    def notices(self) -> list[str]:
        """The new notices for the person."""
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
        uuid, ends = message.agent_uuid, message.kind in BOUNDARIES
        if uuid not in self._followed:
            return
        if ends:
            self._ended.add(uuid)
        events = self._events[uuid]
        if ends or len(events) > MESSAGES_KEPT:
            messages = [event for event in events if isinstance(event, Message)]
            pieces = [event for event in events if isinstance(event, tuple) and not ends]
            self._events[uuid] = [*messages[-MESSAGES_KEPT:], *pieces]
