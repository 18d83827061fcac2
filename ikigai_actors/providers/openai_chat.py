"""Chat completions: the protocol of nearly every server of models. Pure: a request to arguments, chunks to a reply.

Servers differ: calls come in pieces or whole, with an index or without, with ids or without; arguments are text or an
object; the reason for the end is "stop" beside calls; usage comes in the last chunk, in each or in none. All of these
are read here.

Reasoning (``reasoning_content``, ``reasoning``) is kept as thinking of its model. It goes back beside calls only, under
the name under which it came: some services want it there, and refuse it elsewhere.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ikigai_actors.providers.base import Delta, Reply, Request, Spent, ToolCall, Usage
from ikigai_actors.providers.blocks import (
    Attached,
    AudioBlock,
    CallBlock,
    DocumentBlock,
    ModelMessage,
    PictureBlock,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
)
from ikigai_actors.providers.malformed import MalformedStreamError, expect
from ikigai_actors.providers.messages_form import Blobs
from ikigai_actors.providers.openai_parts import (
    OpenAIReply,
    data_url,
    file_name,
    function_form,
    not_taken,
    plain_id,
    sent_name,
)
from ikigai_actors.providers.openai_schema import offered
from ikigai_actors.providers.streamed_reply import ServiceFailure, read_arguments
from ikigai_actors.providers.token_counts import count_in

_REASONING = ("reasoning_content", "reasoning")
"""The fields in which services send a model's reasoning."""
_ID_LENGTH = 40
_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_STOP_REASONS = {
    "stop": "end_turn",
    "eos_token": "end_turn",
    "eos": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
"""Our stop reasons by those of services. A reason that is missing here is kept unchanged."""


def chat_arguments(
    request: Request, model: str, max_tokens: int | None, official: bool, json_output: bool = False
) -> dict[str, Any]:
    """Return a request as arguments of chat completions, without settings that have no value.

    Args:
        max_tokens: the most tokens of a reply, None for the service's own limit.
        official: whether the request goes to OpenAI itself, whose newer models refuse ``max_tokens``; other servers
            know only that name.
        json_output: whether the service shall write the value of the output type, if it accepts the schema.
    """
    settings = request.settings
    messages: list[dict[str, Any]] = []
    if request.system.strip():
        messages.append({"role": "system", "content": request.system})
    sent_ids: dict[str, str] = {}
    for message in request.conversation:
        if message.role == "assistant":
            messages.append(_assistant(message, sent_ids))
        else:
            messages += _user(message, sent_ids, request.blobs)
    arguments: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if max_tokens is not None:
        arguments["max_completion_tokens" if official else "max_tokens"] = max_tokens
    arguments |= {name: settings[name] for name in ("temperature", "top_p") if name in settings}
    if stop := settings.get("stop_sequences"):
        arguments["stop"] = list(stop)
    if effort := (settings.get("thinking") or {}).get("effort"):
        arguments["reasoning_effort"] = effort
    tools, form = offered(request, json_output)
    if form is not None:
        arguments["response_format"] = {"type": "json_schema", "json_schema": form}
    if tools:
        arguments["tools"] = [{"type": "function", "function": function_form(tool)} for tool in tools]
    return arguments


def _assistant(message: ModelMessage, sent_ids: dict[str, str]) -> dict[str, Any]:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    thoughts: dict[str, str] = {}
    for block in message.blocks:
        match block:
            case TextBlock():
                texts.append(block.text)
            case CallBlock():
                own = block.own is not None and len(block.id) <= _ID_LENGTH
                sent_ids[block.id] = block.id if own else plain_id(block.id)
                function = {"name": sent_name(block.name), "arguments": json.dumps(block.input, ensure_ascii=False)}
                calls.append({"id": sent_ids[block.id], "type": "function", "function": function})
            case ThinkingBlock(own={"field": str(field)}):
                thoughts[field] = thoughts.get(field, "") + block.text
    form: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or (None if calls else "")}
    return {**form, "tool_calls": calls, **thoughts} if calls else form


def _user(message: ModelMessage, sent_ids: Mapping[str, str], blobs: Blobs) -> Iterator[dict[str, Any]]:
    """Yield the messages for a user message and results. Pictures of tools follow, since results can only be text."""
    said: list[dict[str, Any]] = []
    for block in message.blocks:
        match block:
            case ResultBlock():
                text = f"Error: {block.text}" if block.is_error else block.text
                call_id = sent_ids.get(block.call_id) or plain_id(block.call_id)
                yield {"role": "tool", "tool_call_id": call_id, "content": text}
                if block.attached:
                    said.append(_text(f"What {block.name} gave beside its text:"))
                    said += [_attached(attachment, blobs) for attachment in block.attached]
            case TextBlock():
                said.append(_text(block.text))
            case PictureBlock() | DocumentBlock() | AudioBlock():
                said.append(_attached(block, blobs))
    if all(part["type"] == "text" for part in said):
        if said:
            yield {"role": "user", "content": "\n\n".join(part["text"] for part in said)}  # all servers take a text
    else:
        yield {"role": "user", "content": said}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _attached(block: Attached, blobs: Blobs) -> dict[str, Any]:
    match block:
        case PictureBlock():
            return {"type": "image_url", "image_url": {"url": data_url(block.blob, blobs)}}
        case DocumentBlock():
            return {
                "type": "file",
                "file": {"filename": file_name(block.blob), "file_data": data_url(block.blob, blobs)},
            }
        case AudioBlock() if (form := _FORMATS.get(block.blob.media)) is not None:
            data = data_url(block.blob, blobs).partition(",")[2]
            return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    return _text(not_taken(block))


class _Call:
    def __init__(self) -> None:
        self.id = self.name = ""
        self.arguments: list[str] = []


class ChatReply(OpenAIReply):
    """A reply of chat completions while it arrives."""

    def __init__(self, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(tools)
        self._thoughts: list[str] = []
        self._field = ""
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._finish = ""

    @property
    def is_whole(self) -> bool:
        """Return whether the service has given a reason for the end of the reply."""
        return bool(self._finish)

    def deltas_of(self, chunk: Mapping[str, Any]) -> Iterator[Delta]:
        """Take a chunk; yield the deltas in it. Raises `ServiceFailure` and `MalformedStreamError`."""
        if chunk.get("error"):
            raise ServiceFailure(chunk["error"])
        if isinstance(chunk.get("model"), str):
            self._model = chunk["model"] or self._model
        if isinstance(usage := chunk.get("usage"), Mapping):
            self._usage = _read_usage(usage)
            yield Delta(spent=Spent(self._usage, self._model))
        choices = expect(list, chunk.get("choices") or [], "list of choices")
        for choice in choices[:1]:
            expect(dict, choice, "choice")
            yield from self._take_delta(expect(dict, choice.get("delta") or {}, "delta of a choice"))
            if choice.get("finish_reason") is not None:
                self._finish = expect(str, choice["finish_reason"], "finish_reason")

    def reply(self) -> Reply:
        """Return the finished reply. Raises `HalfACallError` and `MalformedStreamError`."""
        stop_reason = "refusal" if self._refused else _STOP_REASONS.get(self._finish, self._finish)
        blocks: list[dict[str, Any]] = []
        if self._thoughts:
            blocks.append({"type": "thinking", "thinking": "".join(self._thoughts), "field": self._field})
        if self.text:
            blocks.append({"type": "text", "text": self.text})
        calls = [self._read(call) for call in self._calls]
        blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in calls]
        return Reply(
            self.text, tuple(calls), "tool_use" if calls else stop_reason, self._usage, tuple(blocks), self._model
        )

    def _take_delta(self, delta: Mapping[str, Any]) -> Iterator[Delta]:
        for field in _REASONING:
            if delta.get(field):
                self._field = self._field or field
                yield self._thought(expect(str, delta[field], field))
                break
        content = delta.get("content")
        for part in content if isinstance(content, list) else () if content is None else ({"text": content},):
            yield from self._take_part(expect(dict, part, "part of the content"))
        if delta.get("refusal"):
            self._refused = True
            yield self._said(expect(str, delta["refusal"], "refusal"))
        for piece in expect(list, delta.get("tool_calls") or [], "list of tool_calls"):
            self._take_call(expect(dict, piece, "tool call"))

    def _take_part(self, part: Mapping[str, Any]) -> Iterator[Delta]:
        """Take a part of a content; yield its deltas. Mistral's reasoning models send contents as lists of parts."""
        thought = part.get("thinking")
        for passage in thought if isinstance(thought, list) else ():
            yield from (
                (self._thought(passage["text"]),)
                if isinstance(passage, dict) and isinstance(passage.get("text"), str)
                else ()
            )
        if "text" in part and (text := expect(str, part["text"], "content")):
            yield self._said(text)

    def _said(self, text: str) -> Delta:
        self._text.append(text)
        return Delta(text)

    def _thought(self, text: str) -> Delta:
        self._thoughts.append(text)
        return Delta(text, "thinking")

    def _take_call(self, piece: Mapping[str, Any]) -> None:
        """Add a piece to the call with its index. If pieces have no index, a name or an id begins the next call."""
        function = expect(dict, piece.get("function") or {}, "function of a tool call")
        call_id, name = (
            expect(str, entry or "", "id or name of a call") for entry in (piece.get("id"), function.get("name"))
        )
        index = piece.get("index")
        if index is None:
            index = len(self._calls) if call_id or name else len(self._calls) - 1
        call = self._at.get(expect(int, index, "index of a call"))
        if call is None or (call_id and call.id and call_id != call.id):
            call = self._at[index] = _Call()
            self._calls.append(call)
        call.id, call.name = call.id or call_id, call.name or name
        arguments = function.get("arguments") or ""
        text = arguments if isinstance(arguments, str) else json.dumps(expect(dict, arguments, "arguments of a call"))
        call.arguments.append(text)

    def _read(self, call: _Call) -> ToolCall:
        if not call.name:
            raise MalformedStreamError("a call has no name")
        arguments = read_arguments(call.name, "".join(call.arguments), cut=self._finish == "length")
        return ToolCall(self._names.get(call.name, call.name), arguments, call.id)


def _read_usage(usage: Mapping[str, Any]) -> Usage:
    """Return the tokens. The service counts cached tokens as part of the input; `Usage` counts them separately."""
    read = count_in(usage, "prompt_tokens_details", "cached_tokens") or count_in(usage, "prompt_cache_hit_tokens")
    written = count_in(usage, "prompt_tokens_details", "cache_write_tokens")
    plain = max(count_in(usage, "prompt_tokens") - read - written, 0)
    return Usage(plain, count_in(usage, "completion_tokens"), written, read)
