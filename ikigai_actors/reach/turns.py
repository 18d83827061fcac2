"""Turns for clients: a handle made from rows, and the present state of the turn.

    TurnHandle.parse("4Kd0…/m7")        # the turn that takes up mail 7 of this agent
    TurnHandle.parse("4Kd0…/t17")       # the one that its message 17 has opened
    TurnHandle.parse("4Kd0…/r3.0")      # the first turn of the first child that its remote command 3 forks
    turns.look_at(handle)                  # {"handle": …, "status": "done", "text": …}

A handle means the same to every client, forever. Nothing here waits, and only the beginnings of turns are cached.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NotRequired, Self, TypedDict

from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.errors import AgentDead, BadInput, IkigaiError
from ikigai_actors.providers.base import Reply
from ikigai_actors.reach.shown_questions import waits_in_inbox
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import is_agent_uuid
from ikigai_actors.records.agents.registry import AgentRecord, Died
from ikigai_actors.records.budgets.budget import shown_amount
from ikigai_actors.records.hosts.remote_commands import RemoteCommandKey, answer_of, body_of
from ikigai_actors.records.log.heads import heads_of, section, turn_messages
from ikigai_actors.records.mail.prompts import prompt_times
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.questions.asked import question_id
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.system.remote.follower import CLOCK_MARGIN, News
from ikigai_actors.system.remote.turn import RemoteTurn, TurnEnd

WORKING, ASKS, WAITING_FOR_BUDGET, DONE, FAILED = "working", "asks", "waiting_for_budget", "done", "failed"
STATUSES = (WORKING, ASKS, WAITING_FOR_BUDGET, DONE, FAILED)
"""The states of a turn."""

MAIL, TURN, REQUEST = "m", "t", "r"

_PAGE = 500
"""Messages that are read at once."""

MOST_KNOWN = 10_000
"""The most prompts for which the message that opened the turn is cached."""

_HANDLE = re.compile(r"([^/]+)/([mtr])([0-9]{1,15})(?:\.([0-9]{1,5}))?")


class TurnHandle(NamedTuple):
    """The handle of a turn, which names the turn forever."""

    agent: str
    """The uuid of the agent."""
    kind: str
    number: int
    child: int = 0
    """The index, from 0, of the child among the children that a remote command forks."""

    def __str__(self) -> str:
        return f"{self.agent}/{self.kind}{self.number}" + (f".{self.child}" if self.kind == REQUEST else "")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text of a handle. Raises `BadInput`."""
        match = _HANDLE.fullmatch(text)
        if match is None or not is_agent_uuid(match[1]) or (match[4] is not None) is not (match[2] == REQUEST):
            raise BadInput(f"Expected a handle that fork or prompt gave, such as {'A' * 22}/m7; got {text[:80]!r}.")
        return cls(match[1], match[2], int(match[3]), int(match[4] or 0))


class SpentAmounts(TypedDict):
    """The tokens and dollars that an agent has spent in its life."""

    tokens: int
    usd: float


class AskingCall(TypedDict):
    """A tool call that waits for a decision, in the form for a client."""

    call: str
    tool: str
    arguments: Mapping[str, Any]
    tool_has_changed: NotRequired[str]
    """The difference between the tool's definitions, if it has changed since an earlier question."""
    question: NotRequired[str]
    """The id of the question to a person."""
    waits: NotRequired[str]
    """The place where a person answers the question."""


class SeenTurn(NamedTuple):
    """The state of a turn at one moment: its outcome, whether it has begun, and up to which message it was read."""

    record: AgentRecord
    end: TurnEnd | IkigaiError | None
    """The outcome of the turn; None while it has not ended."""
    is_open: bool = False
    """Whether the turn has begun and not ended."""
    position: int = 0
    """For an ended turn, the message up to which it was read."""


class TurnReader:
    """Reads the states of turns by their handles."""

    def __init__(self, store: Store, pending: Callable[[], list[PendingCall]]) -> None:
        """Read from a store; ``pending`` returns the calls that wait for a decision."""
        self._store, self._pending = store, pending
        self._openings: dict[TurnHandle, int] = {}

    def look_at(self, handle: TurnHandle) -> dict[str, Any]:
        """Return the state of a turn, as JSON data for a client.

        Raises `AgentNotFound`, and `BadInput` for an unknown handle.
        """
        seen = self.seen(handle)
        record = seen.record
        fields = {"handle": str(handle), "agent": record.uuid, "name": record.name, "spent": spent_by(record)}
        if isinstance(seen.end, Reply):
            return {**fields, "status": DONE, "text": seen.end.text}
        if seen.end is not None:
            return {**fields, "status": FAILED, "error": str(seen.end)}
        asks = [] if not seen.is_open else [call for call in self._pending() if call.agent == record.uuid]
        if asks:
            return {**fields, "status": ASKS, "asks": [call_that_asks(call) for call in asks]}
        return {**fields, "status": WORKING if record.waits_for is None else WAITING_FOR_BUDGET}

    def seen(self, handle: TurnHandle) -> SeenTurn:
        """Return the state of a turn. Raises the errors of `look_at`."""
        return self._store.read(lambda tx: self._seen(tx, handle))

    def steps_ended(self, seen: SeenTurn) -> bool:
        """Return whether a turn failed because its model was asked as often as ``max_steps`` allows."""
        place = seen.position

        def read(tx: Transaction) -> list[Message]:
            return section(tx, seen.record.uuid, place - 1, place)

        return any("max_steps" in message.data for message in self._store.read(read))

    def opening(self, handle: TurnHandle) -> int:
        """Return the position of the message that opened the turn of a handle; 0 if none has yet.

        Raises `AgentNotFound`, and `BadInput` for an unknown handle.
        """

        def read(tx: Transaction) -> int:
            if handle.kind == TURN:
                return _checked(tx, handle)
            number = self._opening(tx, registry.get(tx, handle.agent), handle)
            return number if isinstance(number, int) else 0

        return self._store.read(read)

    def settled(self, handle: TurnHandle) -> TurnHandle:
        """Return the handle of the turn itself; before the child of a fork is born, the handle unchanged."""
        return self._store.read(lambda tx: _settled(tx, handle))

    def _seen(self, tx: Transaction, handle: TurnHandle) -> SeenTurn:
        handle = _settled(tx, handle)
        if handle.kind == REQUEST:
            answer = answer_of(tx, RemoteCommandKey(handle.agent, handle.number))
            failed = answer.value if answer is not None and isinstance(answer.value, IkigaiError) else None
            return SeenTurn(registry.get(tx, handle.agent), failed)
        record = registry.get(tx, handle.agent)
        opening = self._opening(tx, record, handle) if handle.kind == MAIL else _checked(tx, handle)
        if isinstance(opening, IkigaiError):
            return SeenTurn(record, opening)
        if opening == 0:
            return SeenTurn(record, None if record.living else _dead(record))
        if record.turn == opening:
            return SeenTurn(record, None, is_open=True)
        end, position = _end(tx, record, opening)
        return SeenTurn(record, end, position=position)

    def _opening(self, tx: Transaction, record: AgentRecord, handle: TurnHandle) -> int | IkigaiError:
        """Return the position of the message that took up a prompt; 0 if none has yet; an error if none will."""
        if (known := self._openings.get(handle)) is not None:
            return known
        mail = prompt_times(tx, handle.agent, handle.number)
        if mail is None:
            raise _unknown(handle)
        if mail.read_at is None:
            return 0
        for message in _backwards(tx, record, mail.created_at - CLOCK_MARGIN):
            if message.kind == Kind.USER and message.data.get("mail") == handle.number:
                if len(self._openings) >= MOST_KNOWN:
                    self._openings.clear()
                self._openings[handle] = message.id
                return message.id
        return BadInput(f"Mail {handle.number} of agent {handle.agent} has opened no turn that is kept.")


def first_turn(tx: Transaction, child: str) -> tuple[TurnHandle, str]:
    """Return the handle and the prompt of the turn with which an agent was born.

    Raises `AgentNotFound`, and `BadInput` for an agent that was born without a prompt.
    """
    place = registry.get(tx, child).fork_message_id
    for message in section(tx, child, place, place + _PAGE):
        if message.kind == Kind.USER:
            return TurnHandle(child, TURN, message.id), message.content
    raise BadInput(f"Agent {child} was born without a prompt.")


def _settled(tx: Transaction, handle: TurnHandle) -> TurnHandle:
    if handle.kind != REQUEST:
        return handle
    asked = body_of(tx, RemoteCommandKey(handle.agent, handle.number))
    children = (
        [asked["child"], *(question[0] for question in asked.get("more", ()))] if asked and "child" in asked else []
    )
    if handle.child >= len(children):
        raise _unknown(handle)
    born = registry.some(tx, [children[handle.child]])
    return first_turn(tx, born[0].uuid)[0] if born else handle


def _checked(tx: Transaction, handle: TurnHandle) -> int:
    """Return the message that opened a turn, by its number. Raises `BadInput` if that message opened no turn."""
    messages = section(tx, handle.agent, handle.number - 1, handle.number)
    if not messages or messages[0].kind != Kind.USER:
        raise _unknown(handle)
    return handle.number


def _backwards(tx: Transaction, record: AgentRecord, since: int) -> Iterator[Message]:
    """Iterate over the agent's own messages from the latest one back to a time."""
    end = heads_of(tx, [record.uuid])[0].position
    while end > record.fork_message_id:
        start = max(record.fork_message_id, end - _PAGE)
        part = section(tx, record.uuid, start, end)
        yield from reversed(part)
        if not part or part[0].created_at < since:
            return
        end = start


def _end(tx: Transaction, record: AgentRecord, opening: int) -> tuple[TurnEnd, int]:
    """Return the outcome of a turn that is over, and the position of its last message."""
    messages = turn_messages(tx, record.uuid, opening)
    died = [] if record.living else [Died(record.uuid, record.exit_cause or "", record.exit_reason or "")]
    end = RemoteTurn(record.uuid, turn=opening).follow(News(messages, died, {record.uuid: record.turn}, ()))
    return (_dead(record) if end is None else end), messages[-1].id if messages else opening


def _dead(record: AgentRecord) -> AgentDead:
    return AgentDead(f"Agent {record.short} is dead: {record.exit_reason or 'no reason is known'}.", record.uuid)


def _unknown(handle: TurnHandle) -> BadInput:
    return BadInput(f"There is no turn {handle}: use a handle that fork or prompt gave.")


def spent_by(record: AgentRecord) -> SpentAmounts:
    """Return the amounts that an agent has spent in its life."""
    return {"tokens": record.spent_tokens, "usd": shown_amount("usd", record.spent_usd)}


def call_that_asks(call: PendingCall) -> AskingCall:
    """Return a call that waits for approval in the form for a client."""
    shown: AskingCall = {"call": call.full_name, "tool": call.tool, "arguments": dict(call.input)}
    if call.tool == ASK_PERSON:
        question = question_id(call.agent, call.asked_at)
        return {**shown, "question": question, "waits": waits_in_inbox(question)}
    return {**shown, "tool_has_changed": call.change} if call.former else shown
