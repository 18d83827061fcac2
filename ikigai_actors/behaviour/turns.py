"""The turns of a log, as cases: the prompt, the calls with their results, and the answer of each turn.

    positions   1     2     3        4      5       6        7     8
    messages    fork  user  assist.  start  result  assist.  user  error
    turns             └── opens 2, answered, end 6 ──┘       └─ opens 7, failed, end 8

A turn is read from the agent's own messages; inherited turns belong to the ancestors. A turn that was cleared or
rewound counts too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

from ikigai_actors.agent.turn.calls import GIVE_RESULT
from ikigai_actors.agent.turn.recorded_words import RecordedWord
from ikigai_actors.arguments import check_callable, check_type
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.base import Usage
from ikigai_actors.reach.histories import written_by
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.system.handles.ref import AgentRef

ANSWERED = "answered"
DIVERGED = "diverged"

_OF_A_WORD = ("steer", "sender", "name", "from")
"""The keys in the data of a steering message that its copy keeps."""


@dataclass(frozen=True, slots=True)
class TurnCall:
    """A call in a turn. Calls are equal if their names and arguments are."""

    position: int = field(compare=False)
    """The position of the reply that made the call."""
    name: str
    input: Mapping[str, Any]
    result: str | None = field(default=None, compare=False)
    """The result; None if the call got none."""
    is_error: bool = field(default=False, compare=False)
    attached: Sequence[Mapping[str, Any]] = field(default=(), compare=False, repr=False)
    """The attachments of the result, as in the data of its message."""


RecordedCalls = list[list[Any]]
"""A list for each recorded call: name, arguments, result, whether it is an error, and attachments, if any."""


def record_of(calls: Iterable[TurnCall]) -> RecordedCalls:
    """Return the record that answers these calls when they are made again; calls without a result are left out."""
    return [
        [call.name, dict(call.input), call.result, call.is_error, *([list(call.attached)] if call.attached else [])]
        for call in calls
        if call.result is not None
    ]


@dataclass(frozen=True, slots=True)
class TurnWord:
    """A steering message that was sent to the agent during its turn."""

    position: int
    text: str
    replies: tuple[int, ...] = field(default=(), repr=False)
    """The positions of the replies of the turn before the message, without interrupted ones."""
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The data of the message: its sender if an agent sent it; in a trial, ``from`` is the recorded position."""


class TurnRequest(NamedTuple):
    """A request of a turn, as recorded by the message with its outcome."""

    position: int
    kind: str
    """The kind of that message: ``assistant`` for a reply, ``summary`` for a model's summary, another kind for a
    request without either.
    """
    model: str
    """The model that was asked, as ``provider:model``; empty if unknown."""
    usage: Usage | None
    """The tokens used; None if the provider reported none."""

    @property
    def was_answered(self) -> bool:
        """Return whether the request gave a reply or a summary; False if it failed or was interrupted."""
        return self.kind in (Kind.ASSISTANT, Kind.SUMMARY)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of an agent, as its log records it."""

    agent: AgentRef
    """The agent whose turn it is."""
    opens: int
    """The position of the message that opened the turn."""
    end: int
    """The position of the message that ended the turn; of the latest message in an open turn."""
    prompt: str | None
    """The prompt; None if the turn had none, as that of an agent forked with a turn."""
    calls: tuple[TurnCall, ...]
    """The calls in order, without the call that gives the value of a typed turn."""
    text: str
    """The answer: the value as JSON in a turn with an output type, else the last text."""
    how: str
    """The end of the turn: ``answered``, ``diverged`` (a call was not in the record), ``failed``, ``interrupted``, or
    ``open``.
    """
    error: str = ""
    """The error of a failed turn; empty for any other turn."""
    requests: tuple[TurnRequest, ...] = field(default=(), compare=False, repr=False)
    """The requests that were answered, and others that cost tokens."""
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The data of the message that opened the turn: its output type and its attachments."""
    born_at: int | None = field(default=None, repr=False)
    """The last message with which the agent was born, when its birth opened the turn: that of a trial, or by a call of
    the parent's model, whose prompt it has. None when a prompt opened it.
    """

    words: tuple[TurnWord, ...] = ()
    """The steering messages sent to the agent during the turn, in order."""

    @property
    def tokens(self) -> int:
        """Return the input and output tokens of the turn's requests, as far as the provider reported them."""
        return sum(request.usage.all_tokens for request in self.requests if request.usage is not None)


def words_again(turn: Turn, at: int, number: int = 1, copied: int = 0) -> list[RecordedWord]:
    """Return the recorded steering messages that a trial gets if it begins at a position of their turn.

    Args:
        turn: the recorded turn.
        at: the position.
        number: the turn of the trial that they enter.
        copied: the last recorded position that the trial begins with a copy of.
    """
    return [
        RecordedWord(number, sum(reply > at for reply in word.replies), word.position, word.text, word.data)
        for word in turn.words
        if word.position > max(at, copied)
    ]


class RecordedTurns(list[Turn]):
    """The turns of some logs, in order of agent and position."""

    def __init__(self, turns: Sequence[Turn], left_out: Mapping[str, int]) -> None:
        super().__init__(turns)
        self.left_out = dict(left_out)
        """The number of turns that were left out, by how they ended."""


def recorded(*agents: AgentRef, where: Callable[[Turn], bool] | None = None) -> RecordedTurns:
    """Return the turns of agents (living, dead or imported), for `replay` and `regress`.

    Args:
        agents: the agents whose turns are returned.
        where: selects the turns; None for those that were answered.

    Returns:
        The turns. Its ``left_out`` counts the others.

    Raises:
        BadInput: there is no agent.
        HistoryPruned: the history of one was deleted.
    """
    if not agents:
        raise BadInput("Expected one agent or more, whose turns are to be read.")
    for agent in agents:
        check_type(agent, AgentRef, "agents", "handles of agents")
    if where is not None:
        check_callable(where, "where", "a function of a Turn")
    kept: list[Turn] = []
    left_out: Counter[str] = Counter()
    for agent in agents:
        for turn in turns_in(agent, own_messages(agent)):
            if where(turn) if where is not None else turn.how == ANSWERED:
                kept.append(turn)
            else:
                left_out[turn.how] += 1
    return RecordedTurns(kept, left_out)


def own_messages(agent: AgentRef) -> list[Message]:
    """Return all messages that an agent wrote itself. Raises `HistoryPruned` if they were deleted."""
    return written_by(agent.system, agent.uuid)


def turns_in(agent: AgentRef, messages: Sequence[Message]) -> Iterator[Turn]:
    """Return the turns among an agent's own messages, oldest first."""
    for opened in _by_turn(messages):
        yield _turn(agent, opened, _end_of_birth(messages) if opened[0] in messages[:3] else None)


def _end_of_birth(messages: Sequence[Message]) -> int | None:
    """Return the id of the last message of an agent's birth, if the birth opened its first turn; else None."""
    if messages[0].data.get("go"):
        born = takewhile(
            lambda message: message.kind in (Kind.FORK, Kind.CONFIGURE) or "from" in message.data, messages
        )
        return [message.id for message in born][-1]
    kinds = [message.kind for message in messages[:3]]
    if kinds[:2] != [Kind.FORK, Kind.TOOL_RESULT]:
        return None
    return messages[2 if kinds[2:] == [Kind.USER] else 1].id


def _by_turn(messages: Sequence[Message]) -> Iterator[list[Message]]:
    opened: list[Message] = []
    for place, message in enumerate(messages):
        opens = _opens(messages, place)
        if opened and (opens or message.kind in (Kind.CLEAR, Kind.REWIND)):
            yield opened
            opened = []
        if opens or opened:
            opened.append(message)
    if opened:
        yield opened


def _opens(messages: Sequence[Message], place: int) -> bool:
    message = messages[place]
    match message.kind:
        case Kind.USER:
            return "from" not in message.data
        case Kind.FORK:
            return message.data.get("go") is True
        case Kind.TOOL_RESULT:  # of the call that forked the agent, when that had no prompt
            return (
                place == 1
                and messages[0].kind == Kind.FORK
                and all(beginning.kind != Kind.USER for beginning in messages[2:3])
            )
    return False


def _turn(agent: AgentRef, messages: Sequence[Message], born_at: int | None) -> Turn:
    """Return the turn that the first of these messages opens."""
    opener = messages[0]
    calls: list[TurnCall] = []
    results: dict[str, Message] = {}
    made: list[tuple[str, TurnCall]] = []
    words: list[TurnWord] = []
    replies: list[int] = []

    def settle() -> None:
        for call_id, call in made:
            result = results.get(call_id)
            if result is not None:
                is_error, attached = bool(result.data.get("is_error")), result.attached
                call = TurnCall(call.position, call.name, call.input, result.content, is_error, attached)
            calls.append(call)
        made.clear()
        results.clear()  # ids are unique within a reply alone

    how, end, text, error = "open", opener.id, "", ""
    for message in messages[1:]:
        match message.kind:
            case Kind.ASSISTANT:
                settle()
                own = message.calls
                made += [
                    (call.id, TurnCall(message.id, call.name, call.input)) for call in own if call.name != GIVE_RESULT
                ]
                text, end = message.content, message.id
                how = "open" if own else ANSWERED
                if message.is_whole_reply:
                    replies.append(message.id)
                else:
                    how = "interrupted"
            case Kind.TOOL_RESULT:
                results[str(message.data.get("tool_use_id"))] = message
                how, end = "open", message.id
            case Kind.TOOL_CALL | Kind.REPAIR | Kind.RETRY | Kind.STEER | Kind.HOOK | Kind.CONTEXT:
                if message.kind == Kind.STEER:
                    said = {name: value for name, value in message.data.items() if name in _OF_A_WORD}
                    words.append(TurnWord(message.id, message.content, tuple(replies), said))
                how, end = "open", message.id
            case Kind.OUTPUT:
                how, end, text = ANSWERED, message.id, message.content
            case Kind.ERROR:
                how = DIVERGED if "diverged" in message.data else "failed"
                end, error = message.id, message.content
            case Kind.INTERRUPTED:
                how, end = "interrupted", message.id
    settle()
    reason = "" if how in (ANSWERED, "open") else error
    prompt = opener.content if opener.kind == Kind.USER else None
    asked = opener.data if opener.kind in (Kind.USER, Kind.FORK) else {}
    data = {name: value for name, value in asked.items() if name in ("output", "attached")}  # not which mail it was
    requests = requests_in(messages)
    return Turn(
        agent, opener.id, end, prompt, tuple(calls), text, how, reason, requests, data, born_at, words=tuple(words)
    )


def requests_in(messages: Iterable[Message]) -> tuple[TurnRequest, ...]:
    """Return the requests of a turn, from the messages that record a reply, a failure or a cost."""
    return tuple(
        TurnRequest(
            message.id, message.kind, str(message.data.get("model", "")), None if spent is None else spent.usage
        )
        for message in messages
        if message.may_cost and ((spent := message.spent) is not None or message.kind == Kind.ASSISTANT)
    )
