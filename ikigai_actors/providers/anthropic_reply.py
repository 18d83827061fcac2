"""The reply in a stream of the Messages API. Pure: events to a reply.

A reply is stored as it came and sent back later, so all of it must be what the API takes again, or it would refuse
every later request. So incomplete replies are refused. The arguments of a call are collected as text, and parsed
strictly at the end: a call with half of its arguments must never run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ikigai_actors.providers.base import Delta, Reply, Spent, ToolCall, Usage
from ikigai_actors.providers.malformed import MalformedStreamError, expect
from ikigai_actors.providers.streamed_reply import HalfACallError, ServiceFailure, StreamedReply, read_arguments
from ikigai_actors.providers.token_counts import count_in

_FIELDS: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}
"""The fields that blocks of known types must have."""


@dataclass(slots=True)
class _Block:
    form: dict[str, Any]
    """The block as it began."""
    pieces: dict[str, list[str]] = field(default_factory=dict)
    """The texts that came since: ``text``, ``thinking``, and ``input`` as JSON."""

    def add(self, name: str, piece: str) -> None:
        """Append a piece to a text of the block.

        Raises `MalformedStreamError` if blocks of its type have no such text.
        """
        kind = self.form.get("type")
        if name not in _FIELDS.get(str(kind), (name,)):
            raise MalformedStreamError(f"a broken event in the stream: {name} for a block of type {kind}")
        self.pieces.setdefault(name, []).append(piece)

    def finished(self) -> dict[str, Any]:
        """Return the whole block. Raises `MalformedStreamError`."""
        kind = expect(str, self.form.get("type"), "type of a block")
        whole = dict(self.form)
        for name, pieces in self.pieces.items():
            text = "".join(pieces)
            if name != "input":
                whole[name] = f"{whole.get(name) or ''}{text}"
            elif text.strip():
                whole[name] = read_arguments(str(whole.get("name")), text, cut=False)
        if kind == "tool_use" and whole.get("input") is None:
            whole["input"] = {}
        for name, expected in _FIELDS.get(kind, {}).items():
            expect(expected, whole.get(name), f"{name} of a block of type {kind}")
        return whole


class MessagesReply(StreamedReply):
    """A reply of the Messages API while it arrives."""

    def __init__(self) -> None:
        super().__init__()
        self._message: dict[str, Any] | None = None
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, _Block] = {}

    @property
    def is_whole(self) -> bool:
        """Return whether the service has given a reason for the end of the reply."""
        return self._message is not None and self._message.get("stop_reason") is not None

    def deltas_of(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """Take an event; yield the deltas in it. Raises `ServiceFailure` and `MalformedStreamError`."""
        kind = expect(str, event.get("type", "error" if event.get("error") else None), "type of an event")
        match kind:
            case "error":
                raise ServiceFailure(event.get("error") or event)
            case "message_start" if self._message is not None:
                raise MalformedStreamError("a broken event in the stream: the message begins twice")
            case "message_start":
                self._message = expect(dict, event.get("message"), "message")
                blocks = expect(list, self._message.get("content"), "content of the message")
                self._blocks = {place: _Block(expect(dict, block, "block")) for place, block in enumerate(blocks)}
                yield self._counted(self._message.get("usage"))
            case "message_delta":
                delta = expect(dict, event.get("delta"), "delta of the message")
                self._begun(kind).update({name: why for name, why in delta.items() if name == "stop_reason" and why})
                yield self._counted(event.get("usage"))
            case "content_block_start":
                self._begun(kind)
                yield from self._begin(event)
            case "content_block_delta":
                yield from self._go_on(event)

    def reply(self) -> Reply:
        """Return the finished reply. Raises `HalfACallError` and `MalformedStreamError`."""
        message = self._begun("the end")
        why = expect(str, message.get("stop_reason"), "stop_reason")
        blocks = list(self._blocks.values())
        if blocks and blocks[-1].form.get("type") == "tool_use" and why != "tool_use":
            raise HalfACallError(str(blocks[-1].form.get("name")), why)
        stored = tuple(block.finished() for block in blocks)
        return Reply(
            text="".join(block["text"] for block in stored if block["type"] == "text"),
            tool_calls=tuple(
                ToolCall(block["name"], block["input"], block["id"]) for block in stored if block["type"] == "tool_use"
            ),
            stop_reason=why,
            usage=self._spent().usage,
            blocks=stored,
            model=expect(str, message.get("model"), "model"),
        )

    def _begun(self, event: str) -> dict[str, Any]:
        """Return the message so far. Raises `MalformedStreamError` if no message has begun before ``event``."""
        if self._message is None:
            raise MalformedStreamError(f"a broken event in the stream: {event} before message_start")
        return self._message

    def _begin(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        place = expect(int, event.get("index"), "index of a block")
        if place in self._blocks:
            raise MalformedStreamError(f"a broken event in the stream: block {place} begins twice")
        form = expect(dict, event.get("content_block"), "block")
        self._blocks[place] = _Block(form)
        for kind in ("text", "thinking"):
            if form.get("type") == kind and form.get(kind):
                yield self._said(expect(str, form[kind], kind), kind)

    def _go_on(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        block = self._blocks.get(expect(int, event.get("index"), "index of a block"))
        if block is None:
            raise MalformedStreamError(f"a broken event in the stream: block {event['index']} has not begun")
        delta = expect(dict, event.get("delta"), "delta")
        match delta.get("type"):
            case "text_delta" | "thinking_delta":
                kind = delta["type"].removesuffix("_delta")
                text = expect(str, delta.get(kind), "delta")
                block.add(kind, text)
                yield self._said(text, kind)
            case "input_json_delta":
                block.add("input", expect(str, delta.get("partial_json"), "delta of a call"))
            case "signature_delta":
                block.form["signature"] = delta.get("signature")
            case "citations_delta":
                citations = block.form["citations"] = block.form.get("citations") or []
                expect(list, citations, "citations of a block").append(delta.get("citation"))

    def _said(self, text: str, kind: str) -> Delta:
        if kind == "text":
            self._text.append(text)
        return Delta(text, kind)

    def _counted(self, usage: object) -> Delta:
        """Take the service's counts of tokens so far; return them as a delta. A missing count stays unchanged."""
        counts = usage if isinstance(usage, Mapping) else {}
        self._usage.update({name: count for name, count in counts.items() if count is not None})
        return Delta(spent=self._spent())

    def _spent(self) -> Spent:
        counts = {field.name: count_in(self._usage, field.name) for field in fields(Usage)}
        counts["cache_creation_1h_input_tokens"] = count_in(self._usage, "cache_creation", "ephemeral_1h_input_tokens")
        return Spent(Usage(**counts), expect(str, self._begun("usage").get("model"), "model"))
