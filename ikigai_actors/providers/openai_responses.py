"""Responses: the protocol of OpenAI's own models. Pure: a request to arguments, events to a reply.

Except for replies in the background, the service stores nothing (``store=False``): each request has the whole
conversation. The reasoning of a model comes encrypted, as items of the reply. These items are sent back unaltered, and
in the same order, to the model that made them. Messages and calls are sent back unaltered too, but without their ids,
because the service would look for stored items with these ids. A call without arguments goes back with ``{}``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ikigai_actors.providers.base import FIND_TOOLS, Delta, Reply, Request, Spent, ToolCall, Usage
from ikigai_actors.providers.blocks import (
    Attached,
    AudioBlock,
    CallBlock,
    DocumentBlock,
    ModelMessage,
    PictureBlock,
    ResultBlock,
    ServiceBlock,
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
    sent_name,
)
from ikigai_actors.providers.openai_schema import offered
from ikigai_actors.providers.streamed_reply import ServiceFailure, read_arguments
from ikigai_actors.providers.token_counts import count_in

ENCRYPTED = "reasoning.encrypted_content"
"""The field that requests encrypted reasoning, to be sent back later. Models without reasoning refuse it."""

_OF_THE_STORE = {"id", "status"}
_SEARCH = {"execution": "client", "status": "completed"}
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_STOP_REASONS = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


def responses_arguments(
    request: Request, model: str, max_tokens: int | None, encrypted: bool = True, json_output: bool = False
) -> dict[str, Any]:
    """Return a request as arguments of Responses, without settings that have no value.

    Args:
        max_tokens: the most tokens of a reply, None for the service's own limit.
        encrypted: whether to ask for the reasoning.
        json_output: whether the service shall write the value of the output type, if it accepts the schema.
    """
    settings = request.settings
    later = {tool["name"]: _function(tool) for tool in request.tools if tool.get("defer_loading")}
    items = [item for message in request.conversation for item in _items(message, request.blobs, later)]
    arguments: dict[str, Any] = {"model": model, "input": items, "stream": True, "store": False}
    if settings.get("background"):
        arguments |= {"background": True, "store": True}
    if encrypted:
        arguments["include"] = [ENCRYPTED]
    if request.system.strip():
        arguments["instructions"] = request.system
    if max_tokens is not None:
        arguments["max_output_tokens"] = max_tokens
    arguments |= {name: settings[name] for name in ("temperature", "top_p") if name in settings}
    if thinking := settings.get("thinking"):
        effort = "none" if thinking.get("type") == "disabled" else thinking.get("effort")
        arguments["reasoning"] = {"summary": "auto", **({"effort": effort} if effort else {})}
    tools, form = offered(request, json_output)
    if form is not None:
        arguments["text"] = {"format": {"type": "json_schema", **form}}
    if tools:
        arguments["tools"] = [_offered(tool, bool(later)) for tool in tools if tool["name"] not in later]
    return arguments


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    later = {"defer_loading": True} if tool.get("defer_loading") else {}
    return {"type": "function", **function_form(tool), "strict": False, **later}


def _offered(tool: Mapping[str, Any], searched: bool) -> dict[str, Any]:
    """Return a tool in the service's form. The tool that finds others becomes the service's search for later tools."""
    form = _function(tool)
    if not searched or tool["name"] != FIND_TOOLS:
        return form
    shown = {"description": form["description"], "parameters": form["parameters"]}
    return {"type": "tool_search", "execution": "client", **shown}


def _items(message: ModelMessage, blobs: Blobs, later: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the items of a message. ``later`` has the tools, by name, that are loaded once a search has found them."""
    said: list[dict[str, Any]] = []
    for block in message.blocks:
        match block:
            case CallBlock(name=name) if name == FIND_TOOLS and later:
                yield {**_SEARCH, "type": "tool_search_call", "call_id": block.id, "arguments": dict(block.input)}
            case ResultBlock(name=name) if name == FIND_TOOLS and later:
                loaded = [later[wanted] for wanted in block.found_tools if wanted in later]
                yield {**_SEARCH, "type": "tool_search_output", "call_id": block.call_id, "tools": loaded}
            case CallBlock(own={"item": {"type": "tool_search_call"}}):
                yield _call(block)
            case ThinkingBlock(own={"item": Mapping() as item}) | ServiceBlock(own={"item": Mapping() as item}):
                yield dict(item)
            case TextBlock(own={"item": Mapping() as item}):
                yield _unstored(item)
            case CallBlock(own={"item": Mapping() as item}):
                # a model may say "" or null, which no request may
                arguments = {} if block.input else {"arguments": "{}"}
                yield {**_unstored(item), "call_id": block.id, "name": sent_name(block.name), **arguments}
            case TextBlock() if message.role == "assistant":
                yield {"role": "assistant", "content": block.text}
            case CallBlock():
                yield _call(block)
            case ResultBlock():
                text = f"Error: {block.text}" if block.is_error else block.text
                parts = [_text(text), *(_attached(attachment, blobs) for attachment in block.attached)]
                output = parts if block.attached else text
                yield {"type": "function_call_output", "call_id": block.call_id, "output": output}
            case TextBlock():
                said.append(_text(block.text))
            case PictureBlock() | DocumentBlock() | AudioBlock():
                said.append(_attached(block, blobs))
    if said:
        yield {"role": "user", "content": said}


def _call(block: CallBlock) -> dict[str, Any]:
    arguments = json.dumps(block.input, ensure_ascii=False)
    return {"type": "function_call", "call_id": block.id, "name": sent_name(block.name), "arguments": arguments}


def _unstored(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in _OF_THE_STORE}


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _attached(block: Attached, blobs: Blobs) -> dict[str, Any]:
    match block:
        case PictureBlock():
            return {"type": "input_image", "image_url": data_url(block.blob, blobs)}
        case DocumentBlock():
            return {"type": "input_file", "filename": file_name(block.blob), "file_data": data_url(block.blob, blobs)}
    return _text(not_taken(block))


class ResponsesReply(OpenAIReply):
    """A reply of Responses while it arrives."""

    def __init__(self, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(tools)
        self._items: dict[int, Mapping[str, Any]] = {}
        self._cut = ""
        self._ended = False

    @property
    def is_whole(self) -> bool:
        """Return whether the service has marked the end of the reply."""
        return self._ended

    def deltas_of(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """Take an event; yield the deltas in it. Raises `ServiceFailure` and `MalformedStreamError`."""
        kind = expect(str, event.get("type", "error" if event.get("error") else None), "type of an event")
        match kind:
            case "error":
                raise ServiceFailure(event.get("error") or event)
            case "response.output_text.delta" | "response.refusal.delta":
                text = expect(str, event.get("delta"), "delta")
                self._text.append(text)
                yield Delta(text)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield Delta(expect(str, event.get("delta"), "delta"), "thinking")
            case "response.output_item.done":
                place = expect(int, event.get("output_index", len(self._items)), "output_index")
                self._items[place] = expect(dict, event.get("item"), "item")
            case "response.created":
                self._note_model(expect(dict, event.get("response"), "response"))
            case _ if kind in _ENDS:
                yield from self._end(expect(dict, event.get("response"), "response"))

    def reply(self) -> Reply:
        """Return the finished reply. Raises `HalfACallError` and `MalformedStreamError`."""
        blocks = [self._block(item) for _, item in sorted(self._items.items())]
        calls = tuple(
            ToolCall(block["name"], block["input"], block["id"]) for block in blocks if block["type"] == "tool_use"
        )
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        stop_reason = "refusal" if self._refused else "end_turn"
        if self._cut:
            stop_reason = _STOP_REASONS.get(self._cut, self._cut)
        return Reply(text, calls, "tool_use" if calls else stop_reason, self._usage, tuple(blocks), self._model)

    def _end(self, response: Mapping[str, Any]) -> Iterator[Delta]:
        self._note_model(response)
        if isinstance(usage := response.get("usage"), Mapping):
            read = count_in(usage, "input_tokens_details", "cached_tokens")
            written = count_in(usage, "input_tokens_details", "cache_write_tokens")
            plain = max(count_in(usage, "input_tokens") - read - written, 0)
            self._usage = Usage(plain, count_in(usage, "output_tokens"), written, read)
            yield Delta(spent=Spent(self._usage, self._model))
        if error := response.get("error"):
            raise ServiceFailure(error)
        details = response.get("incomplete_details")
        if isinstance(details, Mapping):
            self._cut = str(details.get("reason") or "incomplete")
        if not self._items:
            items = expect(list, response.get("output") or [], "output")
            self._items = {place: expect(dict, item, "item") for place, item in enumerate(items)}
        self._ended = response.get("status") != "failed"

    def _note_model(self, response: Mapping[str, Any]) -> None:
        if isinstance(model := response.get("model"), str):
            self._model = model or self._model

    def _block(self, item: Mapping[str, Any]) -> dict[str, Any]:
        match item.get("type"):
            case "message":
                parts = [
                    expect(dict, part, "part of a message") for part in expect(list, item.get("content"), "content")
                ]
                self._refused = self._refused or any(part.get("type") == "refusal" for part in parts)
                texts = [expect(str, part.get("text", part.get("refusal", "")), "text of a part") for part in parts]
                return {"type": "text", "text": "".join(texts), "item": item}
            case "function_call":
                sent = expect(str, item.get("name"), "name of a call")
                arguments = read_arguments(sent, expect(str, item.get("arguments") or "", "arguments"), bool(self._cut))
                name, call_id = self._names.get(sent, sent), expect(str, item.get("call_id"), "call_id of a call")
                return {"type": "tool_use", "id": call_id, "name": name, "input": arguments, "item": item}
            case "tool_search_call" if item.get("execution") == "client":
                arguments = item.get("arguments") or {}
                text = (
                    arguments
                    if isinstance(arguments, str)
                    else json.dumps(expect(dict, arguments, "arguments of a search"))
                )
                arguments = read_arguments(FIND_TOOLS, text, bool(self._cut))
                call_id = expect(str, item.get("call_id"), "call_id of a search")
                return {"type": "tool_use", "id": call_id, "name": FIND_TOOLS, "input": arguments, "item": item}
            case "reasoning":
                return {"type": "reasoning", "thinking": _summary(item), "item": item}
            case str():
                return {"type": "item", "item": item}
        raise MalformedStreamError("an item has no type")


def _summary(reasoning: Mapping[str, Any]) -> str:
    parts = reasoning.get("summary")
    return "\n\n".join(
        str(part["text"])
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, Mapping) and "text" in part
    )
