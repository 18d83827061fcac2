"""Turns that the shell shows.

    events = LiveConversation(system, wake.set, streams=True)       subscribes
    turn = ShownTurn(agent, events, "hello")         from here on nothing of it is missed
    turn.expect(agent.aio.prompt("hello"))
    while not turn.over:
        wake.wait()
        turn.show(screen)

The text of an answer is printed as it arrives. When the finished answer is committed, it is compared with the printed
text: the missing rest is printed, or the whole answer if the texts differ. A turn that ended before anybody looked is
shown by its outcome. A turn is over when its outcome is known: after a reply, the turn may go on with steering messages
that its agent has got meanwhile. Thinking is not shown. At a terminal, a line shows the start of a call, and another
line the duration and tokens of a long turn.
"""

import textwrap

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.subscriptions import StreamCut, Streamed
from ikigai_actors.errors import NoTurn, SystemClosed, TurnInterrupted, Withdrawn
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.reach.conversation import SETTLED, LiveConversation, outcome_of_future
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import OUTPUT
from ikigai_actors.shell.line.output import Screen
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.text import storable
from ikigai_actors.verbs.text.call_page import whole_call
from ikigai_actors.verbs.text.naming import said_by, shown_name_in
from ikigai_actors.verbs.text.pace import TurnSpan
from ikigai_actors.verbs.text.pages import message_words, stop_note
from ikigai_actors.verbs.text.words import took

RESULT_LENGTH = 100
"""The most characters of a tool's result that are shown."""


_LONG = 5.0
"""The least duration of a turn, in seconds, after which its duration and tokens are printed."""


def whole_turn(seconds: float, tokens: int) -> str:
    """Return the line with the duration and the tokens of a turn; empty for a short turn."""
    return f"[{took(seconds, tokens)}]" if seconds >= _LONG and tokens else ""


class ShownTurn:
    """The output of one turn: the agent, the turn, and how much of the turn was printed."""

    _count = 0

    def __init__(self, agent: AgentRef, events: LiveConversation, prompt: str | None = None) -> None:
        """Follow an agent's turn: the turn that the prompt will open; without a prompt, the turn in progress."""
        ShownTurn._count += 1
        self._number = ShownTurn._count
        self._events = events
        self.prompt = prompt
        """The prompt that opens the turn; None for a turn that was open before."""
        self.begun = prompt is None
        """Whether the agent has taken up the prompt, as far as the output shows."""
        self.kept = False
        """Whether the prompt waits in the database because its agent is stopped."""
        self.failed = False
        """Whether the turn ended in an error."""
        self._step = ""
        self._calls: dict[str, ToolCall] = {}  # of the latest reply, by id
        self._span = TurnSpan()
        self._replied = False  # a reply was shown that may have ended it
        self.agent = agent
        self.outcome: Future[Reply] = Future()
        """The outcome of the turn."""
        self.over = False
        """Whether the whole turn was shown."""
        self.asks = False
        """Whether a call of the turn waits for an answer of the person, who was not asked yet."""
        events.follow(agent.uuid)

    @property
    def answering(self) -> bool:
        """Return whether part of an answer was shown, so that other text would interrupt it."""
        return bool(self._step)

    def expect(self, outcome: Future[Reply]) -> "ShownTurn":
        """Set the future with the turn's outcome; return this object."""
        self.outcome = outcome
        self._events.await_outcome(self.agent, self._number, outcome)
        return self

    def show(self, screen: Screen) -> None:
        """Print everything of the turn that was not printed yet."""
        while not self.over and (event := self._events.next(self.agent.uuid)) is not None:
            if isinstance(event, Message) and event.kind != SETTLED:
                self._span.add(event)
            match event:
                case Message(kind=kind, id=number) if (kind, number) == (SETTLED, self._number):
                    self._show_outcome(screen)
                case _ if self._replied and not (isinstance(event, Message) and event.kind == Kind.STEER):
                    self._events.give_back(event)  # of what comes behind this turn: only a word goes on with it
                    self.over = True
                case Message(kind=Kind.USER):
                    self.begun = self.begun or event.content == self.prompt
                case _ if not self.begun:  # of an earlier turn: the prompt closes one that was cut off
                    pass
                case Streamed(kind="text"):
                    self._step += event.text
                    screen.stream(event.text)
                case StreamCut():
                    self._step = ""  # the reply comes from its beginning, or not at all
                    screen.fresh()
                case Message(kind=Kind.ASSISTANT):
                    self._calls = {call.id: call for call in event.calls}
                    self._finish_step(screen, event.content, str(event.data.get("stop_reason", "")))
                case Message(kind=Kind.APPROVAL):
                    screen.fresh()
                    self.asks = not event.data.get("approved")
                case Message(kind=Kind.TOOL_CALL) if screen.in_words:
                    call = self._calls.get(str(event.data.get("tool_use_id", "")))
                    line = event.content if call is None else whole_call(call.name, call.input)
                    screen.line(f"[running {shortened(line)}]", dim=True)
                case Message(kind=Kind.TOOL_RESULT):
                    screen.line(f"[{event.data.get('name', 'tool')}: {shortened(event.content)}]", dim=True)
                case Message(kind=Kind.RETRY):
                    self._step = ""  # the retry replaces the text received so far
                    screen.line(message_words(event).entry, dim=True)
                case Message(kind=Kind.STEER):
                    self._replied = False  # the turn goes on
                    screen.line(f"[read: {shortened(event.content)}]", dim=True)
                case Message(kind=Kind.REPAIR):
                    screen.line(message_words(event).line or "", dim=True)
                case Message(kind=Kind.OUTPUT):
                    self._finish_step(screen, event.content, OUTPUT)
                case Message(kind=Kind.ERROR):
                    self._fail(screen, event.content)
                case Message(kind=Kind.INTERRUPTED):
                    self._end(screen, "[interrupted]")
        if self.over and screen.in_words and (line := whole_turn(self._span.seconds, self._span.tokens)):
            screen.line(line, dim=True)

    def _finish_step(self, screen: Screen, text: str, stop_reason: str) -> None:
        streamed, self._step = storable(self._step), ""
        if not text.startswith(streamed):
            screen.fresh()
            streamed = ""
        screen.stream(text[len(streamed) :])
        screen.fresh()
        if note := stop_note(stop_reason, not text.strip() and stop_reason != "tool_use"):
            screen.line(note, dim=True)
        self._replied = stop_reason != "tool_use"

    def _show_outcome(self, screen: Screen) -> None:
        """Print the outcome of a turn that ended before it was followed, or without a message in the log."""
        match outcome_of_future(self.outcome):
            case _ if self._replied:  # that was it
                pass
            case Reply() as reply:
                self._finish_step(screen, reply.text, reply.stop_reason)
            case TurnInterrupted():
                self._end(screen, "[interrupted]")
            case NoTurn() | SystemClosed() | Withdrawn():  # the shell has said so, or says why it ends
                pass
            case error:
                self._fail(screen, said_by(error, shown_name_in(self.agent.system)))
        self.over = True

    def _fail(self, screen: Screen, error: str) -> None:
        self.failed = True
        self._end(screen, f"[error: {error}]")

    def _end(self, screen: Screen, mark: str) -> None:
        screen.line(mark, dim=True)
        self.over = True


def shortened(text: str, length: int = RESULT_LENGTH) -> str:
    """Return a text on one line, cut to this length."""
    return textwrap.shorten(text, length, placeholder=" …") or "nothing"
