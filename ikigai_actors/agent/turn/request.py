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
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.agent.turn.calls import FORK
from ikigai_actors.providers.base import GO_ON, OPENING, Request, ToolCall
from ikigai_actors.records.messages import Kind, Message
from ikigai_actors.records.replies import INTERRUPTED, THINKING, calls_in, new_call_id
from ikigai_actors.records.settings import SETTINGS

_Block = Mapping[str, Any]
"""A content block of the Messages API."""

NOT_RUN = "not run in this process"
"""The result of a call that has none."""
NO_OUTPUT = "(no output)"
"""The result of a call that gave nothing: the API refuses an error without text."""

_KEPT = {"system", *(name for name, setting in SETTINGS.items() if not setting.of_the_model)}
"""The settings that are no settings of the request: it has a place of its own for the system prompt."""
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LENGTH = 128


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
        settings: The settings in force. ``system`` is the system prompt. Of the others those are passed on that go
            to the model (`records.settings.Setting.of_the_model`), and those that this version does not know.
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
        settings={key: value for key, value in settings.items() if key not in _KEPT},
        shared=turns.shared,
    )


def _name(name: str) -> str:
    """A tool's name in the API's alphabet."""
    return _NOT_IN_NAMES.sub("_", name)[:_NAME_LENGTH] or "_"


def _text(text: str) -> _Block:
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
        self._said: list[_Block] = []  # prompts and mail lines since the last reply

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
        calls = calls_in(message)
        sent = [self._id_to_send(message.id, position, call) for position, call in enumerate(calls)]
        self._open = {call.id: (call_id, call) for call_id, call in zip(sent, calls, strict=True)}
        uses = iter(self._open.values())
        self._append(
            "assistant", [_use(block, *next(uses)) if block["type"] == "tool_use" else block for block in blocks]
        )
        if message.id <= self._fork:
            self.shared = self._blocks

    def _blocks_to_send(self, message: Message) -> list[_Block]:
        """A reply's blocks without blank text, foreign thinking and thinking at the end."""
        data = message.data
        blocks: list[_Block] = [_text(message.content)]
        if data.get("stop_reason") != INTERRUPTED:
            blocks = data.get("blocks") or blocks + [{"type": "tool_use"} for _ in data.get("tool_calls") or ()]
        own = data.get("model") == self._model
        sent = [block for block in blocks if _is_sendable(block, own)]
        while sent and sent[-1]["type"] in THINKING:
            sent.pop()
        return sent

    def _id_to_send(self, message_id: int, position: int, call: ToolCall) -> str:
        """The call's own id, unless the API would refuse it; then one from its position."""
        call_id = call.id
        if not _CALL_ID.fullmatch(call_id) or call_id in self._sent_ids:
            call_id = new_call_id(message_id, position, self._sent_ids)
        self._sent_ids.add(call_id)
        return call_id

    def _close_user(self) -> None:
        """Write the user's side: a result for each call of the last reply, then what was said."""
        forks_last = sorted(self._open, key=lambda call_id: self._open[call_id][1].name == FORK)  # sorted() is stable
        content = [_result(self._open[call_id][0], self._results.get(call_id)) for call_id in forks_last] + self._said
        if content:
            self._append("user", content)
        self._open, self._results, self._said = {}, {}, []

    def _append(self, role: str, blocks: list[_Block]) -> None:
        """Append a message, or its blocks to the last one of the same role."""
        self._blocks += len(blocks)
        if self._messages and self._messages[-1]["role"] == role:
            self._messages[-1]["content"].extend(blocks)
        else:
            self._messages.append({"role": role, "content": list(blocks)})


def _is_sendable(block: _Block, own: bool) -> bool:
    kind = block.get("type")
    if kind == "text":
        return bool(str(block.get("text") or "").strip())
    return own if kind in THINKING else bool(kind)


def _use(block: _Block, call_id: str, call: ToolCall) -> _Block:
    """The block of a call, as it is sent: the provider's own, unaltered, unless the API would refuse that."""
    name = _name(call.name)
    if block.get("id") == call_id and block.get("name") == name and isinstance(block.get("input"), Mapping):
        return block
    call_input = call.input if isinstance(call.input, Mapping) else {}
    return {**block, "type": "tool_use", "id": call_id, "name": name, "input": call_input}


def _result(call_id: str, message: Message | None) -> _Block:
    """The block that answers a call."""
    if message is None:
        return {"type": "tool_result", "tool_use_id": call_id, "content": NOT_RUN, "is_error": True}
    content = message.content if message.content.strip() else NO_OUTPUT
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {**block, "is_error": True} if message.data.get("is_error") else block
