"""AG-UI by HTTP: a run is a turn of an agent, sent as events that a client shows, and can get again.

    POST /agui/AGENT                    prompts the agent with the latest message of the user, once for each ``runId``
    GET  /agui/AGENT?after=POSITION     the events after a message of the history, and then further events as they come

An event that ends a message has the position of the message as its id. A client whose connection broke continues there,
by ``after`` or, as browsers do, by the header ``Last-Event-ID``. The history is in the agent's log; the earlier
messages of a request only show which messages the client has, so that it gets none twice. A call that waits for a
decision ends the run as an interrupt; ``resume`` decides on it, and follows the rest of the turn.
"""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

from ag_ui.core import (
    PROTOCOL_VERSION,
    BaseEvent,
    Interrupt,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TextPart,
    UserMessage,
)
from ag_ui.core import Message as WebMessage
from pydantic import ValidationError

from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.doors.agui.stream import LOOK_AGAIN, AgentStream, latest_of, send_event
from ikigai_actors.doors.agui.transcript import ClientMessages, call_id
from ikigai_actors.doors.call_title import call_title
from ikigai_actors.errors import BadInput, IkigaiError, NotAllowed, TurnInterrupted
from ikigai_actors.http_server.answers import SentEventStream, answer
from ikigai_actors.http_server.requests import MOST_BODY, HttpRequest, SendEvent
from ikigai_actors.providers.base import Reply
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.news import NewsFeed, NewsWatch
from ikigai_actors.reach.shown_questions import ShownQuestion, client_form
from ikigai_actors.reach.turns import TURN, SeenTurn, TurnHandle, TurnReader
from ikigai_actors.reach.views import position_of, scrollback_of
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.text import unfit_fields
from ikigai_actors.verbs.acts.changes import decide_on
from ikigai_actors.verbs.acts.turns import kept_prompt
from ikigai_actors.verbs.principal import Principal, acting_as, check_right
from ikigai_actors.verbs.question_forms import ACCEPT, DECLINE, questions_that_wait, take_form_answer
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.text.call_page import change_note

_LONGEST_PAUSE = 8.0
"""The most seconds between two checks of a silent turn, because a turn may end without a message."""

_ENDING = RunErrorEvent(message="The server is ending. Run again with the same runId.")

LONGEST_POSITION = 16
"""A number of digits: positions have fewer."""


def end_of(seen: SeenTurn, asks: Sequence[ShownQuestion], run: RunAgentInput) -> BaseEvent | None:
    """Return the event that ends a run; None while it goes on."""
    if isinstance(seen.end, Reply):
        return _finished(run, RunFinishedSuccessOutcome())
    if isinstance(seen.end, TurnInterrupted):
        return _finished(run, RunFinishedCancelledOutcome())
    if seen.end is not None:
        return RunErrorEvent(message=str(seen.end))
    return _finished(run, RunFinishedInterruptOutcome(interrupts=[*map(_interrupt, asks)])) if asks else None


def _started(run: RunAgentInput) -> BaseEvent:
    return RunStartedEvent(thread_id=run.thread_id, run_id=run.run_id, protocol_version=PROTOCOL_VERSION)


def _finished(run: RunAgentInput, outcome: RunFinishedOutcome) -> BaseEvent:
    return RunFinishedEvent(thread_id=run.thread_id, run_id=run.run_id, outcome=outcome)


def _interrupt(question: ShownQuestion) -> Interrupt:
    """Return the interrupt with which a run ends, for a call that waits for approval or a question to a person."""
    call = question.call
    if not question.is_call:
        return Interrupt(
            id=call.full_name,
            reason="input",
            message=question.title,
            tool_call_id=call_id(call.reply, call.id),
            response_schema=client_form(question),
        )
    return Interrupt(
        id=call.full_name,
        reason="approval",
        message="\n".join(filter(None, (call_title(call.tool, call.input), change_note(call)))),
        tool_call_id=call_id(call.reply, call.id),
    )


class BegunRun(NamedTuple):
    """A run that a client has requested: the handle of its turn, and the place where its events begin."""

    handle: TurnHandle
    asked: RunAgentInput
    after: int = 0
    """The position after which the events begin; 0 for the message that opens the turn."""


class WebRuns:
    """Answers the requests of AG-UI over HTTP."""

    def __init__(self, access: Access, news: NewsFeed, principal: Principal | None = None) -> None:
        """Make the handler for one principal, or for the user of this machine.

        Args:
            access: the agents that may be reached.
            news: the feed of events of agents.
            principal: the principal that asks; None for the user of this machine, who has all rights.
        """
        self._access, self._news, self._principal = access, news, principal

    async def post(self, agent: str, request: HttpRequest, out: SendEvent) -> None:
        """Prompt an agent, or decide on its calls, and stream the run. Raises `RequestRefused`."""
        body = await request.body(MOST_BODY)
        try:
            asked = run_input(body)
            run = await asyncio.to_thread(self._allowed, agent, asked)
        except IkigaiError as error:
            await answer(out, 403 if isinstance(error, NotAllowed) else 400, {"error": str(error)})
            return
        async with SentEventStream(request, out) as stream, self._news.watch(run.handle.agent, pieces=True) as news:
            await send_event(stream, _started(asked))
            try:
                await send_event(stream, await self._stream_run(stream, news, run))
            except IkigaiError as error:
                await send_event(stream, RunErrorEvent(message=str(error)))

    async def get(self, agent: str, request: HttpRequest, out: SendEvent) -> None:
        """Stream all events of an agent after a message."""
        after = request.query.get("after") or request.headers.get("last-event-id") or "0"
        if not is_position(after):
            refused = f"Expected after to be the position of a message; got {after[:40]!r}."
            await answer(out, 400, {"error": refused})
            return
        try:
            uuid = (await asyncio.to_thread(self._access.find, agent)).uuid
        except IkigaiError as error:
            await answer(out, 404, {"error": str(error)})
            return
        async with SentEventStream(request, out) as stream, self._news.watch(uuid, pieces=True) as news:
            shown = await AgentStream.after(int(after), self._access, stream, news, prompts=True)
            await shown.send_messages(await asyncio.to_thread(self._head, uuid))
            while not stream.is_left and not self._news.ending.is_set():
                state = shown.news()
                await shown.send_messages(state.head)
                await shown.send_reply(state)
                await shown.wait()

    async def _stream_run(self, stream: SentEventStream, news: NewsWatch, run: BegunRun) -> BaseEvent:
        """Send the events of a turn; return the event that ends the run. Raises `IkigaiError` and `ConnectionError`."""
        while not (opening := await asyncio.to_thread(self._reader().opening, run.handle)):
            end, _ = await asyncio.to_thread(self._look_at_turn, run)
            if end is not None:
                return end  # its agent is dead
            if self._news.ending.is_set():
                return _ENDING
            await news.news(LOOK_AGAIN)
        has = ClientMessages.of(run.asked.messages)
        shown = await AgentStream.after(run.after or opening, self._access, stream, news, has=has)
        due = pause = 0.0
        while True:
            state = shown.news()
            if (comes := state.head > shown.place) or monotonic() >= due:
                pause = LOOK_AGAIN if comes else min(2 * pause or LOOK_AGAIN, _LONGEST_PAUSE)
                due = monotonic() + pause
                end, until = await asyncio.to_thread(self._look_at_turn, run)
                await shown.send_messages(until)
                if end is not None:
                    return end
            if self._news.ending.is_set():
                return _ENDING
            await shown.send_reply(state)
            await shown.wait()

    def _look_at_turn(self, run: BegunRun) -> tuple[BaseEvent | None, int]:
        """Return the event that ends a run (None while it goes on), and the position of the turn's latest message."""
        agent = run.handle.agent
        head = self._head(agent)  # before the turn is looked at: while that is open, all up to there is of it
        seen = self._reader().seen(run.handle)
        if seen.end is not None:
            return end_of(seen, [], run.asked), seen.position
        return end_of(seen, self._asks(agent, head) if seen.is_open else [], run.asked), head

    def _asks(self, agent: str, head: int) -> list[ShownQuestion]:
        """Return the questions of an agent, up to a message, that the client may decide or answer."""
        return [
            question
            for question in questions_that_wait(self._access)
            if question.agent == agent and question.call.reply <= head
        ]

    def _head(self, agent: str) -> int:
        return position_of(self._access.system, agent)

    def _reader(self) -> TurnReader:
        return self._access.turns

    def _allowed(self, text: str, asked: RunAgentInput) -> BegunRun:
        """Begin the requested run, if the principal has the right to it; return the run."""
        if self._principal is not None:
            check_right(self._principal, Right.PROMPT, "A run")
        with acting_as(self._principal, self._access):
            return self._begun(text, asked)

    def _begun(self, text: str, asked: RunAgentInput) -> BegunRun:
        """Commit the prompt or the decisions of the requested run; return the run."""
        if asked.resume:
            handle, after = self._resumed(text, asked.resume)
            return BegunRun(handle, asked, after)
        said, is_new = _latest_text(asked.messages)
        keyed = self._access.keyed(asked.run_id, "agui", {"agent": text, "text": said})
        if not is_new and not keyed.was_done():
            raise BadInput("Expected the latest of messages to be what the user says.")
        return BegunRun(kept_prompt(keyed, text, said), asked)

    def _resumed(self, text: str, entries: Sequence[ResumeEntry]) -> tuple[TurnHandle, int]:
        """Decide on the calls that the entries name; return the turn's handle, and the asking reply's position."""
        record = self._access.find(text)
        answers = {entry.interrupt_id: entry for entry in entries}
        asked = max((reply for name in answers if (reply := self._asking_reply(record.uuid, name))), default=0)
        if not asked:
            raise BadInput(f"Agent {record.short} has asked nothing of that name: resume what an interrupt gave.")
        questions = [each for each in self._asks(record.uuid, asked) if each.call.full_name in answers]
        if self._principal is not None and any(question.is_call for question in questions):
            check_right(self._principal, Right.APPROVE, "A decision")
        for question in questions:
            call = question.call
            answer = answers[call.full_name]
            if not question.is_call:
                action = ACCEPT if answer.status == "resolved" else DECLINE
                take_form_answer(self._access, self._principal, question, action, answer.payload)
                continue
            allowed = answer.payload.get("approved") if isinstance(answer.payload, dict) else answer.payload
            decide_on(self._access, record.uuid, call.full_name, answer.status == "resolved" and allowed is True)
        scrollback = scrollback_of(self._access.client, record.uuid)
        return TurnHandle(record.uuid, TURN, latest_of(scrollback, asked, lambda call: call.kind == Kind.USER)), asked

    def _asking_reply(self, agent: str, name: str) -> int:
        """Return the position of the reply that has the call with this full name; 0 for none."""
        number = name.partition("/")[0]
        if not is_position(number):
            return 0
        messages = scrollback_of(self._access.client, agent).between(int(number) - 1, int(number))
        calls = [PendingCall(agent, message.id, c.id, c.name, c.input) for message in messages for c in message.calls]
        return next((call.reply for call in calls if f"{name}/".startswith(f"{call.full_name}/")), 0)


def is_position(text: str) -> bool:
    """Return whether a text of a request is a position of a message, in digits."""
    return text.isascii() and text.isdecimal() and len(text) < LONGEST_POSITION


def run_input(body: bytes) -> RunAgentInput:
    """Parse the body of a request for a run. Raises `BadInput`, which names each wrong field."""
    try:
        return RunAgentInput.model_validate_json(body)
    except ValidationError as error:
        expected = "Expected a RunAgentInput: an object with threadId, runId and messages."
        raise BadInput(f"{expected} {unfit_fields(error)}") from error


def _latest_text(messages: Sequence[WebMessage]) -> tuple[str, bool]:
    """Return the latest text of the user, and whether it is the last message. Raises `BadInput`."""
    said = [message for message in messages if isinstance(message, UserMessage)]
    if not said:
        raise BadInput("Expected messages with one that the user says.")
    content = said[-1].content
    text = content if isinstance(content, str) else "\n".join(p.text for p in content if isinstance(p, TextPart))
    return text, messages[-1] is said[-1]
