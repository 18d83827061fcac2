"""The spans of turns that have ended: a fold of the messages that an agent itself has written. Pure.

    fold = TurnFold(TracedAgent(uuid, "builder", parent))
    ended = [turn for message in messages if (turn := fold.follow(message)) is not None]

A turn is a span ``invoke_agent``; its requests (``chat``) and its calls (``execute_tool``) lie flat below it. A turn
that ended with an error and was opened again has a second such span, in the same trace. Nothing is told of a turn that
is open, so the parent of each span is there. Times never fall within a turn, also where a clock was set back.

A reply without calls may be the last message of its turn or not. The next message of the log shows whether the turn has
ended; at the end of a log, the registry shows it (`TurnFold.close`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ikigai_actors.providers.base import Spent
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.sight.traces import conventions as name
from ikigai_actors.sight.traces.ids import call_span, request_span, trace_of, turn_span

INTERNAL, CLIENT = 1, 3
"""The kinds of spans, by their numbers in OpenTelemetry's protocol."""

FORKED = "fork"
MAILED = "mail"
MERGED = "merge"
"""The reasons of links between spans."""

BOTH = "both"
"""The ``usage`` with token counts on turns and requests; else only requests have them, for tools that add them up."""

AttributeValue = str | int | tuple[str, ...]


class SpanLink(NamedTuple):
    """A link from a span to the turn of another agent, with the reason."""

    trace: bytes
    span: bytes
    why: str


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """A span of OpenTelemetry, with times in milliseconds since 1970."""

    trace: bytes
    id: bytes
    parent: bytes
    """The id of the parent span; empty for none."""
    name: str
    kind: int
    start: int
    end: int
    attributes: Mapping[str, AttributeValue]
    error: str = ""
    links: tuple[SpanLink, ...] = ()


class Reference(NamedTuple):
    """A reference from a span to the turn of another agent, from which a link is made."""

    span: int
    """The index of the span in its turn."""
    why: str
    agent: str
    """The uuid of the agent of the other turn; with ``mail``, of the agent that read the mail."""
    at: int
    """A position in the log of the other agent; with ``mail``, the time of reading in milliseconds since 1970."""


class EndedTurn(NamedTuple):
    """The spans of a turn that has ended, and its references to other turns."""

    opens: int
    """The position of the message that opened the turn."""
    again: int
    end: int
    """The time, in milliseconds since 1970, at which the turn ended."""
    spans: list[TraceSpan]
    """The spans of the turn; the turn's own span comes first."""
    references: list[Reference]


class TracedAgent(NamedTuple):
    """The agent whose log is folded into spans."""

    uuid: str
    name: str
    parent: str | None
    born: int = 0
    """The position of the agent's birth in the log of the agent that forked it."""


class OpenTurn(NamedTuple):
    """The data from which the id of a turn's span is computed."""

    opens: int
    again: int
    first: bool
    """Whether this is the agent's first turn."""


class _Called(NamedTuple):
    reply: int
    place: int
    tool: str
    arguments: Mapping[str, Any]
    start: int
    started: bool


@dataclass(slots=True)
class _Turn:
    opens: int
    start: int
    asked: int
    """The time at which the message was there that the next reply answers."""
    prompt: str
    again: int = 0
    ids: tuple[bytes, bytes] | None = None
    first: bool = False
    requests: int = 0
    """The number of messages with the outcome of a request since the turn was opened."""
    asking: bool = True
    """Whether a request is due or in progress."""
    fresh: bool = True
    """Whether no message has come since the turn was opened."""
    rests: Message | None = None
    """The reply that ends the turn, unless the next message belongs to the turn, too."""
    rested: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    provider: str = ""
    model: str = ""
    text: str = ""
    spans: list[TraceSpan] = field(default_factory=list)
    calls: dict[str, _Called] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)


class TurnFold:
    """Folds the messages of one agent, in order, into the spans of its turns."""

    def __init__(self, agent: TracedAgent, *, content: bool = False, first: bool = True, usage: str = BOTH) -> None:
        """Begin.

        Args:
            agent: the agent.
            content: whether spans have texts.
            first: whether its log is folded from its beginning.
            usage: which spans have tokens.
        """
        self._agent, self._content, self._first, self._usage = agent, content, first, usage
        self._now = 0
        self._maker = ""  # who has forked it: its parent, or the agent of an experiment
        self._turn: _Turn | None = None
        self._before: _Turn | None = None
        self._failed = False  # the turn before ended with an error, and may be opened again

    @property
    def open(self) -> OpenTurn | None:
        """Return the turn in progress; None without one."""
        turn = self._turn
        return None if turn is None or turn.rests is not None else OpenTurn(turn.opens, turn.again, turn.first)

    @property
    def latest(self) -> OpenTurn | None:
        """Return the turn in progress, or else the latest turn; None without any."""
        turn = self._turn or self._before
        return None if turn is None else OpenTurn(turn.opens, turn.again, turn.first)

    def follow(self, message: Message) -> EndedTurn | None:
        """Take the next message; return the turn that has ended before or with this message, None for none."""
        self._now = max(self._now, message.created_at)
        if "from" in message.data and message.kind != Kind.MERGE:
            return None  # a copy with which a trial begins: nobody was asked for it
        if message.kind == Kind.FORK and "parent" in message.data:
            self._maker = str(message.data.get("by") or message.data["parent"])
        turn = self._turn
        if message.kind == Kind.USER and (turn is None or turn.rests is not None or turn.fresh):
            ended = None if turn is None or turn.rests is None else self._rest(turn, turn.rests)
            self._open(message, first=self._first or (turn is not None and turn.fresh and turn.first))
            return ended
        if turn is None:
            if self._before is None and (message.kind == Kind.TOOL_RESULT or _goes_on_at_birth(message)):
                self._open(message, first=self._first)
                return None
            if not (self._failed and message.is_in_turn):
                if self._before is not None:
                    self._before.requests += message.counts_as_request
                return None
            turn = self._open_again()
        if message.is_in_turn:
            turn.rests, turn.fresh = None, False
        turn.requests += message.counts_as_request
        return None if turn.rests is not None else self._follow_within(turn, message)

    def close(self, *, is_open: bool, death: str | None = None, died: int = 0) -> EndedTurn | None:
        """Return the last turn, if it ended with the end of the log.

        Args:
            is_open: whether a turn is open according to the registry.
            death: how the agent died; None if it lives.
            died: when it died, in milliseconds since 1970.
        """
        turn = self._turn
        if turn is None or is_open:
            return None
        if turn.rests is not None:
            return self._rest(turn, turn.rests)
        if death is None:
            return None
        self._now = max(self._now, died)
        return self._end(turn, self._now, None, "" if death == "exited" else death)

    def _rest(self, turn: _Turn, reply: Message) -> EndedTurn:
        return self._end(turn, turn.rested, reply, _error_of(reply))

    def _open(self, message: Message, *, first: bool) -> None:
        self._turn = _Turn(message.id, self._now, self._now, message.content, first=first)
        self._first = self._failed = False

    def _open_again(self) -> _Turn:
        before, self._failed = self._before, False
        assert before is not None  # it has failed
        known = _Turn(before.opens, self._now, self._now, before.prompt, before.again + 1, first=before.first)
        self._turn = replace(known, requests=before.requests, provider=before.provider, model=before.model)
        return self._turn

    def _follow_within(self, turn: _Turn, message: Message) -> EndedTurn | None:
        """Take a message of the open turn; return the turn if the message ends it."""
        kind, data = message.kind, message.data
        call = str(data.get("tool_use_id", ""))
        match kind:
            case Kind.MERGE if isinstance(merged := data.get("from"), str) and isinstance(data.get("head"), int):
                turn.references.append(Reference(0, MERGED, merged, data["head"]))
            case Kind.TOOL_CALL if call in turn.calls and not turn.calls[call].started:
                turn.calls[call] = turn.calls[call]._replace(start=self._now, started=True)
            case Kind.TOOL_RESULT:
                if (called := turn.calls.pop(call, None)) is not None:
                    if called.tool == "read_mail":
                        place = len(turn.spans) + 1
                        turn.references.append(Reference(place, MAILED, self._agent.uuid, message.created_at))
                    error = "tool_error" if data.get("is_error") else ""
                    turn.spans.append(self._call_span(turn, called, call, error, message.content))
                turn.asked, turn.asking = self._now, not turn.calls
            case Kind.STEER | Kind.REPAIR:
                turn.asked, turn.asking = self._now, True
        if message.counts_as_request:
            self._spend(turn, message)
        if kind in (Kind.OUTPUT, Kind.ERROR, Kind.INTERRUPTED):
            why = "" if kind == Kind.OUTPUT or "exit" in data else _error_of(message)
            return self._end(turn, self._now, message, why)
        if kind == Kind.ASSISTANT and not turn.calls:
            turn.rests, turn.rested = message, self._now
        return None

    def _spend(self, turn: _Turn, message: Message) -> None:
        """Take a message with the outcome of a request, and add the span of the request if one was sent."""
        spent, data = message.spent, message.data
        provider, _, model = str(data.get("model") or "").partition(":")
        model = model or (spent.model if spent is not None else "") or turn.model  # none is set: the one that answers
        turn.provider, turn.model = provider or turn.provider, model
        if spent is not None:
            turn.input_tokens += all_input(spent)
            turn.output_tokens += spent.usage.output_tokens
        if _was_asked(turn, message):
            turn.spans.append(self._request_span(turn, message, model, spent))
        if message.kind == Kind.ASSISTANT:
            turn.text = message.content
            turn.calls = {
                call.id: _Called(message.id, place, call.name, call.input, self._now, False)
                for place, call in enumerate(message.calls)
            }
            turn.asking = False
        turn.asked = self._now

    def _request_span(self, turn: _Turn, message: Message, model: str, spent: Spent | None) -> TraceSpan:
        data, error = message.data, _error_of(message)
        facts: dict[str, AttributeValue] = {
            **self._facts(name.CHAT, turn),
            **({name.REQUEST_MODEL: model} if model else {}),
            name.OWN_POSITION: message.id,
        }
        if spent is not None:
            facts |= _usage_facts(spent)
        if stop := data.get("stop_reason"):
            facts[name.FINISH_REASONS] = (str(stop),)
        if error:
            facts[name.ERROR_TYPE] = error
        if self._content and message.kind == Kind.ASSISTANT:
            facts[name.OUTPUT_MESSAGES] = _reply_as_json(message)
        own = request_span(self._agent.uuid, turn.opens, turn.requests)
        called = f"{name.CHAT} {model}".rstrip()
        return TraceSpan(*self._below(turn, own), called, CLIENT, turn.asked, self._now, facts, error)

    def _call_span(self, turn: _Turn, called: _Called, call: str, error: str, result: str | None) -> TraceSpan:
        facts: dict[str, AttributeValue] = {
            name.OPERATION: name.EXECUTE_TOOL,
            name.CONVERSATION: self._agent.uuid,
            name.TOOL_NAME: called.tool,
            name.TOOL_CALL_ID: call,
            name.TOOL_TYPE: "function",
            name.OWN_POSITION: called.reply,
        }
        if error:
            facts[name.ERROR_TYPE] = error
        if self._content:
            facts[name.TOOL_ARGUMENTS] = _json(dict(called.arguments))
            if result is not None:
                facts[name.TOOL_RESULT] = result
        own = call_span(self._agent.uuid, called.reply, called.place)
        shown = f"{name.EXECUTE_TOOL} {called.tool}"
        return TraceSpan(*self._below(turn, own), shown, INTERNAL, called.start, self._now, facts, error)

    def _ids(self, turn: _Turn) -> tuple[bytes, bytes]:
        """Return the ids of the trace and of the span of a turn."""
        if turn.ids is None:
            agent = self._agent.uuid
            turn.ids = trace_of(agent, turn.opens), turn_span(agent, turn.opens, turn.again)
        return turn.ids

    def _below(self, turn: _Turn, own: bytes) -> tuple[bytes, bytes, bytes]:
        trace, root = self._ids(turn)
        return trace, own, root

    def _facts(self, operation: str, turn: _Turn) -> dict[str, AttributeValue]:
        return {
            name.OPERATION: operation,
            name.PROVIDER: turn.provider or "ikigai",
            name.CONVERSATION: self._agent.uuid,
        }

    def _sums(self, turn: _Turn) -> dict[str, AttributeValue]:
        sums = {name.INPUT_TOKENS: turn.input_tokens, name.OUTPUT_TOKENS: turn.output_tokens}
        return {**sums} if self._usage == BOTH else {}

    def _end(self, turn: _Turn, end: int, last: Message | None, error: str = "") -> EndedTurn:
        for call, called in turn.calls.items():  # what was started has a span, below which others may lie
            if called.started:
                turn.spans.append(self._call_span(turn, called, call, error or "interrupted", None))
        agent = self._agent
        facts: dict[str, AttributeValue] = {
            **self._facts(name.INVOKE_AGENT, turn),
            name.AGENT_NAME: agent.name,
            **({name.REQUEST_MODEL: turn.model} if turn.model else {}),
            **self._sums(turn),
            name.OWN_AGENT: agent.uuid,
            **({name.OWN_PARENT: agent.parent} if agent.parent else {}),
            name.OWN_TURN: turn.opens,
            name.OWN_END: 0 if last is None else last.id,
        }
        if error:
            facts[name.ERROR_TYPE] = error
        if self._content:
            facts[name.INPUT_MESSAGES] = _json([_said("user", turn.prompt)])
            facts[name.OUTPUT_MESSAGES] = _json([_said("assistant", turn.text)])
        trace, own = self._ids(turn)
        shown = f"{name.INVOKE_AGENT} {agent.name}"
        root = TraceSpan(trace, own, b"", shown, INTERNAL, turn.start, end, facts, error)
        references = turn.references
        if turn.first and self._maker and agent.born:
            references = [Reference(0, FORKED, self._maker, agent.born), *references]
        self._turn, self._before = None, turn
        self._failed = last is not None and last.kind == Kind.ERROR
        return EndedTurn(turn.opens, turn.again, end, [root, *turn.spans], references)


def _goes_on_at_birth(message: Message) -> bool:
    return message.kind == Kind.FORK and "parent" in message.data and message.data.get("go") is True


def _was_asked(turn: _Turn, message: Message) -> bool:
    """Return whether a message with the outcome of a request follows a request that was really sent."""
    match message.kind:
        case Kind.SUMMARY:
            return message.data.get("how") == "model"
        case Kind.MERGE:
            return message.data.get("how") == "summary"
        case Kind.ERROR | Kind.INTERRUPTED:
            return turn.asking and not message.data.keys() & {"output", "diverged", "exit"}
    return True


def _error_of(message: Message) -> str:
    """Return the ``error.type`` of a message: a short class of errors, without the text of the error."""
    data = message.data
    match message.kind:
        case Kind.RETRY:
            return "retry"
        case Kind.INTERRUPTED:
            return "interrupted"
        case Kind.ASSISTANT if data.get("stop_reason") == "interrupted":
            return "interrupted"
        case Kind.ERROR:
            known = {"missing": "provider_missing", "output": "output_error", "diverged": "replay_diverged"}
            return next((word for key, word in known.items() if key in data), "provider_error")
    return ""


def all_input(spent: Spent) -> int:
    """Return all input tokens of a request, cached ones included."""
    usage = spent.usage
    return usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


def _usage_facts(spent: Spent) -> dict[str, AttributeValue]:
    usage = spent.usage
    cached = {
        name.CACHE_READ_TOKENS: usage.cache_read_input_tokens,
        name.CACHE_CREATION_TOKENS: usage.cache_creation_input_tokens,
    }
    return {
        **({name.RESPONSE_MODEL: spent.model} if spent.model else {}),
        name.INPUT_TOKENS: all_input(spent),
        name.OUTPUT_TOKENS: usage.output_tokens,
        **{key: count for key, count in cached.items() if count},
    }


def _said(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}] if text else []}


def _reply_as_json(message: Message) -> str:
    said = _said("assistant", message.content)
    calls: Sequence[dict[str, object]] = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": dict(call.input)} for call in message.calls
    ]
    parts = said["parts"]
    assert isinstance(parts, list)
    return _json([{**said, "parts": [*parts, *calls], "finish_reason": str(message.data.get("stop_reason", ""))}])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
