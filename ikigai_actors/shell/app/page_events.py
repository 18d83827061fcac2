"""The events of a system, as the application shows them: the news of a page since it was last drawn, and notices."""

from collections.abc import Callable

from ikigai_actors.agent.subscriptions import Event, PromptKept, SystemTrouble
from ikigai_actors.reach.conversation import LiveConversation
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.system.handles.ref import System
from ikigai_actors.verbs.text.wording import explained, waits_for_cont

MESSAGES_KEPT = 500
"""The most messages kept for an agent that is not shown; its page reads the others from the database."""


class PageEvents(LiveConversation):
    """Collects events until the application shows them."""

    def __init__(
        self, system: System, changed: Callable[[], None], committed: Callable[[Message], None] = lambda _: None
    ) -> None:
        """Subscribe to events.

        Both functions run on the subscription's thread; ``changed`` at every event except pieces of answers.
        """
        self._system, self._committed = system, committed
        self._notices: list[str] = []
        super().__init__(system, changed, most=MESSAGES_KEPT)

    def hear(self, event: Event) -> None:
        if isinstance(event, Message):
            self._committed(event)
        super().hear(event)

    def notice(self, text: str) -> None:
        """Add a notice for the person."""
        with self._lock:
            self._notices.append(text)

    def notices(self) -> list[str]:
        """Return the new notices for the person."""
        with self._lock:
            new, self._notices = self._notices, []
            return new

    def _keep(self, event: SystemTrouble | PromptKept) -> None:
        """Convert an event to a notice, on the subscription's thread, because its words are read from the database."""
        if isinstance(event, PromptKept):
            self.notice(waits_for_cont(self._system.handle(event.agent_uuid), "the prompt"))
        else:
            self.notice(explained(event))
