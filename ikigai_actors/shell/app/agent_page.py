"""A page: one agent's transcript and prompt, and how the transcript is filled.

A page shows the end of the history from the database, and then the events. If a page was not shown for long, messages
between the two may be missing, and the page reads them from the database. Positions are consecutive, so no message is
missed or shown twice.
"""

from collections.abc import Callable
from typing import Any, Protocol

from ikigai_actors.reach.conversation import AgentNews
from ikigai_actors.reach.scrollback import Scrollback
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.shell.app.transcript.pieces import Look
from ikigai_actors.shell.app.transcript.readable import ReadableTranscript
from ikigai_actors.shell.app.widgets.prompt import PromptBox
from ikigai_actors.system.handles.ref import AgentRef

_AT_ONCE = 50
"""Messages that are read at once."""


class Later(Protocol):
    """Runs work on another thread, then a callback with the result or the error on the application's thread."""

    def __call__(
        self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[], None] | None = None
    ) -> None: ...


class Page:
    """One agent on the main screen: its transcript and its prompt, and how the transcript is filled."""

    def __init__(self, agent: AgentRef, transcript: ReadableTranscript, prompt: PromptBox, later: Later) -> None:
        self.agent, self.transcript, self.prompt = agent, transcript, prompt
        self._later = later
        self._scrollback: Scrollback | None = None
        self._reading = False
        self._held: list[AgentNews] = []
        self._told: list[tuple[str, Look]] = []

    @property
    def disposable(self) -> bool:
        """Return whether the page can be closed and made again later without loss."""
        return self.transcript.following and not (self.transcript.answering or self.prompt.text or self.prompt.along)

    def tell(self, text: str, look: Look) -> None:
        """Show a text of the shell below the messages, also while the history is still being read."""
        if self._reading and self._scrollback is None:
            self._told.append((text, look))
        else:
            self.transcript.tell(text, look)

    def read(self) -> None:
        """Read the end of the agent's history, unless it has been read.

        After a failed read, the next call reads again.
        """
        if self._reading:
            return
        if self._scrollback is not None:
            self._go_on()
            return
        self._reading = True

        def read() -> tuple[Scrollback, list[Message]]:
            scrollback = scrollback_of(self.agent.system, self.agent.uuid)
            return scrollback, scrollback.latest(_AT_ONCE)

        def show(pages: tuple[Scrollback, list[Message]]) -> None:
            self._scrollback, messages = pages
            self.transcript.add(messages)
            self._go_on()

        self._later(read, show, self._stop)

    def read_before(self, position: int) -> None:
        """Read the messages before a position from the database, and show them above the others."""
        scrollback, show = self._scrollback, self.transcript.prepend
        assert scrollback is not None  # something is shown
        self._later(lambda: scrollback.before(position, _AT_ONCE), show, lambda: show(None))

    def show(self, news: AgentNews) -> None:
        """Show new messages and events of the agent."""
        if self._reading or self._scrollback is None:
            self._held.append(news)
            self.read()
            return
        head = self.transcript.head
        messages = [message for message in news.messages if message.id > head]
        if messages and messages[0].id > head + 1:
            self._held.append(news)
            self._fill(head, messages[0].id - 1)
            return
        if news.ended and not any(message.ends_pieces for message in messages):
            self.transcript.forget_answer()
        if messages:
            self.transcript.add(messages)
        if news.pieces:
            self.transcript.stream((kind, "".join(texts)) for kind, texts in news.pieces)

    def _fill(self, start: int, end: int) -> None:
        """Read the messages missing between two positions; if there are very many, only the last ones."""
        scrollback = self._scrollback
        assert scrollback is not None  # the first reading is over
        self._reading = True
        skip = end - start > 4 * _AT_ONCE and self.transcript.following

        def show(messages: list[Message]) -> None:
            (self.transcript.restart if skip else self.transcript.add)(messages)
            self._go_on()

        self._later(lambda: scrollback.between(end - _AT_ONCE if skip else start, end), show, self._stop)

    def _stop(self) -> None:
        """Stop reading. After a failure of the store, reading begins again at the next event or the next visit."""
        self._reading, waiting, self._told = False, self._told, []
        for text, look in waiting:
            self.tell(text, look)

    def _go_on(self) -> None:
        """Finish a successful reading: show the news that arrived during it."""
        self._stop()
        held, self._held = self._held, []
        for news in held:
            self.show(news)
