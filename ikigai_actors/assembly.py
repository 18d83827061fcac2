"""Assembly: from a folded history to the model's request, which is always valid, whatever happened.

    request = assemble(conversation, settings, agent=uuid, name=None, model="anthropic:claude-sonnet-5-5")

Pure: the same history gives the same request. What it holds to:

- Roles alternate; the first and the last message are the user's. A placeholder stands in where the history has none.
- Each call is answered in the very next user message: results first, in the order of the calls, those of ``fork`` last,
  so that parent and child share all that stands before. A call without a result gets one that says why; a result that
  answers no call of the last reply is dropped; of two results the first counts. Prompts and mail lines follow.
- Thinking is resent unaltered, and only to the model that made it. It never ends a message (the API refuses that).
- Blank text is left out, a message left empty too, and its neighbours are joined.
- Every content is a list of blocks, and joining only appends. So of two histories cut where no call waits for its
  result, with no clear or rewind between, the shorter one's blocks are a prefix of the longer one's (the last
  placeholder apart): a provider's prompt cache lives on that.

The form in which a reply is stored has its home here too: `reply_message_data` writes it, `reply_of` reads it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from math import isfinite
from typing import Any

from ikigai_actors.errors import ProviderError, TurnInterrupted
from ikigai_actors.messages import Kind, Message
from ikigai_actors.providers.base import GO_ON, OPENING, Reply, Request, Spent, ToolCall, Usage

Block = Mapping[str, Any]
"""A content block of the Messages API."""

NOT_RUN = "not run in this process"
"""The result of a call that has none."""
NO_OUTPUT = "(no output)"
"""The result of a call that gave nothing: the API refuses an error without text."""
INTERRUPTED = "interrupted"
"""The stop reason of a reply that was cut off: only its text is kept."""

_NOT_SETTINGS = frozenset({"system", "model", "tools", "policies", "notify", "stream_retries"})
_THINKING = frozenset({"thinking", "redacted_thinking"})
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LENGTH = 128
_HALVES = re.compile("[\ud800-\udfff]")


def assemble(
    conversation: Iterable[Message],
    settings: Mapping[str, Any],
    *,
    agent: str,
    name: str | None,
    model: str,
    tools: Sequence[Mapping[str, Any]] = (),
    fork: int = 0,
) -> Request:
    """Make the request for an agent's next step.

    Args:
        conversation: The folded history, oldest first; what is not conversation in it is ignored.
        settings: The settings in force. ``system`` is the system prompt; ``model``, ``tools``, ``policies``,
            ``notify`` and ``stream_retries`` are not passed on.
        agent: The agent's uuid, for the provider.
        name: The agent's name, if it has one, likewise.
        model: The model that will answer, ``provider:model`` or ``provider``; it gets its own thinking back only.
        tools: Descriptions of the tools on offer.
        fork: The position at which the agent was forked: messages up to it are its siblings' as well.

    Returns:
        A request that the Messages API accepts. Its blocks are shared with the messages: do not change them.
    """
    turns = _Turns(model, fork)
    for message in conversation:
        turns.add(message)
    return Request(
        agent=agent,
        name=name,
        model=model.partition(":")[2],
        system=settings.get("system") or "",
        messages=turns.finish(),
        tools=tuple(tools),
        settings={key: value for key, value in settings.items() if key not in _NOT_SETTINGS},
        shared=turns.shared,
    )


def reply_message_data(reply: Reply, model: str) -> dict[str, Any]:
    """What an assistant message stores of a reply beside its text.

    Args:
        reply: The reply.
        model: Who was asked for it, as ``provider:model``: what `assemble` compares before it resends thinking.

    Blocks and calls are kept as they came, but for what no request can carry: halves of characters become U+FFFD, and
    numbers that JSON has not None. A thought that is changed by that is left out, since its signature is not its own.

    Returns:
        The message's data: ``model``, ``stop_reason`` and, when there are any, ``blocks`` (else ``tool_calls``),
        ``usage`` and ``made_by`` (the model's name as the provider reported it).
    """
    data: dict[str, Any] = {"model": model, "stop_reason": reply.stop_reason}
    if reply.blocks:
        sendable = ((block, _sendable(dict(block))) for block in reply.blocks)
        data["blocks"] = [sent for block, sent in sendable if sent == block or block.get("type") not in _THINKING]
    elif reply.tool_calls:
        data["tool_calls"] = [
            _sendable({"id": call.id, "name": call.name, "input": dict(call.input)}) for call in reply.tool_calls
        ]
    if reply.usage is not None:
        data |= spent_data(Spent(reply.usage, reply.model))
    elif reply.model:
        data["made_by"] = reply.model
    return data


def spent_data(spent: Spent | None) -> dict[str, Any]:
    """What a message stores of what a service has counted, of a whole reply or of one that never came."""
    if spent is None:
        return {}
    usage = {"usage": asdict(spent.usage)}
    return {**usage, "made_by": spent.model} if spent.model else usage


def spent_of(message: Message) -> Spent | None:
    """What a service has counted for a message: the inverse of `spent_data`. None when it was told nothing."""
    usage = _usage(message.data.get("usage"))
    return None if usage is None else Spent(usage, message.data.get("made_by", ""))


def _sendable(value: Any) -> Any:
    """A value of a reply as a request can carry it."""
    match value:
        case str():
            return value if value.isascii() else _HALVES.sub("\ufffd", value)
        case float():
            return value if isfinite(value) else None
        case Mapping():
            return {_sendable(key): _sendable(part) for key, part in value.items()}
        case list() | tuple():
            return [_sendable(part) for part in value]
    return value


def reply_of(message: Message) -> Reply:
    """The reply that an assistant message holds: the inverse of `reply_message_data`.

    Args:
        message: A message of kind ``assistant``.

    Returns:
        The reply. Each of its calls has an id, unique within the reply: one without gets it from the message's
        position. These ids are what ``data.tool_use_id`` of a result refers to.
    """
    data = message.data
    stop_reason = data.get("stop_reason", "end_turn")
    return Reply(
        text=message.content,
        tool_calls=_calls(message),
        stop_reason=stop_reason,
        usage=_usage(data.get("usage")),
        blocks=() if stop_reason == INTERRUPTED else tuple(data.get("blocks") or ()),
        model=data.get("made_by", ""),
    )


def outcome_of(messages: Sequence[Message]) -> Reply | ProviderError | TurnInterrupted | None:
    """How the latest turn among an agent's own messages ended; None when there was none."""
    for message in reversed(messages):
        match message.kind:
            case Kind.ASSISTANT:
                reply = reply_of(message)
                if reply.stop_reason == "interrupted":
                    return TurnInterrupted(
                        f"The turn of agent {message.agent_uuid} was interrupted.", message.agent_uuid
                    )
                return reply
            case Kind.ERROR:
                return ProviderError(message.content, message.data.get("partial", ""))
            case Kind.INTERRUPTED:
                return TurnInterrupted(f"The turn of agent {message.agent_uuid} was interrupted.", message.agent_uuid)
    return None


def last_outcome(messages: Sequence[Message]) -> Reply | ProviderError | TurnInterrupted | None:
    """How the latest turn among a dead agent's own messages ended; None when there was none, or death cut it off."""
    for message in reversed(messages):
        if message.kind == Kind.USER:
            return None
        outcome = outcome_of((message,))
        if isinstance(outcome, Reply) and outcome.tool_calls:
            return None
        if outcome is not None:
            return outcome
    return None


def _usage(stored: Mapping[str, Any] | None) -> Usage | None:
    """The stored usage; what a newer version may have added to it is left out."""
    if stored is None:
        return None
    return Usage(**{field.name: stored[field.name] for field in fields(Usage) if field.name in stored})


def _calls(message: Message) -> tuple[ToolCall, ...]:
    """The calls of an assistant message, each with an id that is unique among them."""
    if message.data.get("stop_reason") == INTERRUPTED:
        return ()
    blocks = message.data.get("blocks")
    stored = (
        [block for block in blocks if block.get("type") == "tool_use"] if blocks else message.data.get("tool_calls")
    )
    taken = {str(call.get("id") or "") for call in stored or ()}
    seen: set[str] = set()
    calls = []
    for position, call in enumerate(stored or ()):
        own = str(call.get("id") or "")
        call_id = own if own and own not in seen else _new_id(message.id, position, taken | seen)
        seen.add(call_id)
        calls.append(ToolCall(str(call.get("name") or ""), call.get("input") or {}, call_id))
    return tuple(calls)


def _new_id(message_id: int, position: int, taken: set[str]) -> str:
    """An id for a call, from where it stands; underscores keep it off those that are taken."""
    call_id = f"call_{message_id}_{position}"
    while call_id in taken:
        call_id += "_"
    return call_id


def _name(name: str) -> str:
    """A tool's name in the API's alphabet."""
    return _NOT_IN_NAMES.sub("_", name)[:_NAME_LENGTH] or "_"


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


class _Turns:
    """The request's messages while they are built; the user's side stays open until the next reply."""

    def __init__(self, model: str, fork: int) -> None:
        self.shared = 0
        """Blocks up to the end of the last reply before the fork. What follows it is still open at the fork: the
        results of calls, among them of the fork itself.
        """
        self._model, self._fork = model, fork
        self._blocks = 0
        self._messages: list[dict[str, Any]] = []
        self._sent_ids: set[str] = set()  # ids of calls in the request: the API wants them unique in the whole of it
        self._open: dict[
            str, tuple[str, ToolCall]
        ] = {}  # id in the log → id in the request and call, of the last reply
        self._results: dict[str, Message] = {}  # id in the log → result
        self._said: list[Block] = []  # prompts and mail lines since the last reply

    def add(self, message: Message) -> None:
        """Take in one message; kinds that are no conversation are ignored."""
        match message.kind:
            case Kind.USER | Kind.MAIL:
                if message.content.strip():
                    self._said.append(_text(message.content))
            case Kind.TOOL_RESULT:
                call_id = str(message.data.get("tool_use_id"))
                if call_id in self._open:
                    self._results.setdefault(call_id, message)
            case Kind.ASSISTANT:
                self._add_reply(message)

    def finish(self) -> tuple[dict[str, Any], ...]:
        """The messages, the user's last."""
        self._close_user()
        if not self._messages or self._messages[-1]["role"] == "assistant":
            self._append("user", [_text(GO_ON)])
        return tuple(self._messages)

    def _add_reply(self, message: Message) -> None:
        blocks = self._blocks_to_send(message)
        if not blocks:
            return  # as if it were not there: calls before it stay open
        self._close_user()
        if not self._messages:
            self._append("user", [_text(OPENING)])
        calls = _calls(message)
        sent = [self._id_to_send(message.id, position, call) for position, call in enumerate(calls)]
        self._open = {call.id: (call_id, call) for call_id, call in zip(sent, calls, strict=True)}
        uses = iter(self._open.values())
        self._append(
            "assistant", [_use(block, *next(uses)) if block["type"] == "tool_use" else block for block in blocks]
        )
        if message.id <= self._fork:
            self.shared = self._blocks

    def _blocks_to_send(self, message: Message) -> list[Block]:
        """A reply's blocks without blank text, foreign thinking and thinking at the end."""
        data = message.data
        blocks: list[Block] = [_text(message.content)]
        if data.get("stop_reason") != INTERRUPTED:
            blocks = data.get("blocks") or blocks + [{"type": "tool_use"} for _ in data.get("tool_calls") or ()]
        own = data.get("model") == self._model
        sent = [block for block in blocks if _is_sendable(block, own)]
        while sent and sent[-1]["type"] in _THINKING:
            sent.pop()
        return sent

    def _id_to_send(self, message_id: int, position: int, call: ToolCall) -> str:
        """The call's own id, unless the API would refuse it; then one from its position."""
        call_id = call.id
        if not _CALL_ID.fullmatch(call_id) or call_id in self._sent_ids:
            call_id = _new_id(message_id, position, self._sent_ids)
        self._sent_ids.add(call_id)
        return call_id

    def _close_user(self) -> None:
        """Write the user's side: a result for each call of the last reply, then what was said."""
        forks_last = sorted(self._open, key=lambda call_id: self._open[call_id][1].name == "fork")  # sorted() is stable
        content = [_result(self._open[call_id][0], self._results.get(call_id)) for call_id in forks_last] + self._said
        if content:
            self._append("user", content)
        self._open, self._results, self._said = {}, {}, []

    def _append(self, role: str, blocks: list[Block]) -> None:
        """Append a message, or its blocks to the last one of the same role."""
        self._blocks += len(blocks)
        if self._messages and self._messages[-1]["role"] == role:
            self._messages[-1]["content"].extend(blocks)
        else:
            self._messages.append({"role": role, "content": list(blocks)})


def _is_sendable(block: Block, own: bool) -> bool:
    kind = block.get("type")
    if kind == "text":
        return bool(str(block.get("text") or "").strip())
    return own if kind in _THINKING else bool(kind)


def _use(block: Block, call_id: str, call: ToolCall) -> Block:
    """The block of a call as it is sent: the provider's own, unaltered, unless the API would refuse it."""
    name = _name(call.name)
    if block.get("id") == call_id and block.get("name") == name and isinstance(block.get("input"), Mapping):
        return block
    call_input = call.input if isinstance(call.input, Mapping) else {}
    return {**block, "type": "tool_use", "id": call_id, "name": name, "input": call_input}


def _result(call_id: str, message: Message | None) -> Block:
    """The block that answers a call."""
    if message is None:
        return {"type": "tool_result", "tool_use_id": call_id, "content": NOT_RUN, "is_error": True}
    content = message.content if message.content.strip() else NO_OUTPUT
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {**block, "is_error": True} if message.data.get("is_error") else block
