"""What OpenAI's protocols reject in a request, and what the pickiest of their servers rejects besides."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator

_DESCRIPTION = 1_024
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/]+=*")
_CHAT = {
    "model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "top_p",
    "stop", "tools", "reasoning_effort", "response_format",
}  # fmt: skip
_RESPONSES = {
    "model", "input", "stream", "store", "include", "instructions", "max_output_tokens", "temperature", "top_p",
    "tools", "reasoning", "text", "background",
}  # fmt: skip


def chat_violations(body: Mapping[str, Any], official: bool = False) -> list[str]:
    """All that is wrong with a request for a chat completion; empty when it is accepted."""
    return [*_of_chat(body, official)]


def responses_violations(body: Mapping[str, Any]) -> list[str]:
    """All that is wrong with a request for a response; empty when it is accepted."""
    return [*_of_responses(body)]


def _of_chat(body: Mapping[str, Any], official: bool) -> Iterator[str]:
    yield from (f"{name}: unknown argument" for name in body.keys() - _CHAT)
    if not body.get("model"):
        yield "model: required"
    if ("max_tokens" if official else "max_completion_tokens") in body:
        yield "max_tokens, max_completion_tokens: the other one is meant"
    if (wanted := body.get("response_format")) is not None:
        yield from _of_format(wanted.get("json_schema"), wanted.get("type"))
    tools = body.get("tools")
    if tools is not None:
        yield from _of_tools([tool.get("function", {}) for tool in tools])
        if any(tool.get("type") != "function" for tool in tools):
            yield "tools: type must be function"
    waiting: list[str] = []
    before = ""
    for place, message in enumerate(body.get("messages") or [{}]):
        where, role = f"messages.{place}", message.get("role")
        if role == "system" and place:
            yield f"{where}: a system message stands first"
        if role == "tool":
            yield from _of_tool_message(message, waiting, where)
            before = role
            continue
        if waiting:
            yield f"{where}: calls {waiting} have no result"
        if role == "user":
            yield from _of_content(message.get("content"), where)
        elif role == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            yield from _of_assistant(message, waiting, where)
        elif role != "system":
            yield f"{where}: unknown role {role!r}"
        if role == before:
            yield f"{where}: two messages of {role}"
        before = "" if role == "system" else str(role)
    if before not in ("user", "tool"):
        yield "messages: the last one must be the user's, or a result"
    yield from (f"calls {waiting} have no result" for _ in waiting[:1])


def _of_tool_message(message: Mapping[str, Any], waiting: list[str], where: str) -> Iterator[str]:
    if message.get("tool_call_id") not in waiting:
        yield f"{where}: no call {message.get('tool_call_id')!r} waits"
    else:
        waiting.remove(message["tool_call_id"])
    if not isinstance(message.get("content"), str) or message.keys() != {"role", "tool_call_id", "content"}:
        yield f"{where}: a result is text"


def _of_assistant(message: Mapping[str, Any], ids: list[str], where: str) -> Iterator[str]:
    if message.keys() - {"role", "content", "tool_calls", "reasoning_content", "reasoning"}:
        yield f"{where}: unknown field in {sorted(message)}"
    if not isinstance(message.get("content"), str) and not (ids and message.get("content") is None):
        yield f"{where}: content is text, or null beside calls"
    if not ids and message.keys() & {"reasoning_content", "reasoning"}:
        yield f"{where}: reasoning is taken beside calls only"
    if len(ids) != len(set(ids)):
        yield f"{where}: two calls of one id"
    for call in message.get("tool_calls", ()):
        if not 0 < len(call["id"]) <= 40:
            yield f"{where}: id of {len(call['id'])} characters"
        yield from _of_call(call.get("function", {}), where)


def _of_call(call: Mapping[str, Any], where: str) -> Iterator[str]:
    if not _NAME.fullmatch(call.get("name", "")):
        yield f"{where}: name {call.get('name')!r}"
    try:
        if not isinstance(json.loads(call["arguments"]), dict):
            yield f"{where}: arguments are an object"
    except (KeyError, TypeError, ValueError):
        yield f"{where}: arguments are JSON as text"


def _of_tools(tools: list[Mapping[str, Any]]) -> Iterator[str]:
    names = [tool.get("name", "") for tool in tools]
    yield from (f"tools: name {name!r}" for name in names if not _NAME.fullmatch(name))
    if not tools or len(names) != len(set(names)):
        yield "tools: at least one, and no two of a name"
    for place, tool in enumerate(tools):
        where, schema = f"tools[{place}]", tool.get("parameters", {})
        if len(tool.get("description", "")) > _DESCRIPTION:
            yield f"{where}: a description of more than {_DESCRIPTION} characters"
        if schema.get("type") != "object" or not isinstance(schema.get("properties"), Mapping):
            yield f"{where}: parameters are an object with properties"
        if schema.keys() & {"oneOf", "anyOf", "allOf", "enum", "not"}:
            yield f"{where}: parameters are combined at the top"
        yield from (f"{where}: an array without items" for _ in _arrays_without_items(schema))
        if not Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid(schema):
            yield f"{where}: parameters are no JSON Schema 2020-12"


def _is_search(tool: Mapping[str, Any]) -> bool:
    keys = {"type", "execution", "description", "parameters"}
    return tool.get("type") == "tool_search" and tool.get("execution") == "client" and tool.keys() == keys


def _arrays_without_items(part: Any) -> Iterator[Any]:
    if isinstance(part, Mapping):
        if part.get("type") == "array" and "items" not in part:
            yield part
        for element in part.values():
            yield from _arrays_without_items(element)
    elif isinstance(part, list):
        for element in part:
            yield from _arrays_without_items(element)


def _of_format(form: Any, kind: Any) -> Iterator[str]:
    if kind != "json_schema" or form.keys() != {"name", "strict", "schema"} or form["strict"] is not True:
        yield "format: a strict json_schema is meant"
    elif not _NAME.fullmatch(form["name"]) or form["schema"].get("additionalProperties") is not False:
        yield "format: a name and a closed object"


def _of_content(content: Any, where: str) -> Iterator[str]:
    if isinstance(content, str):
        yield from () if content.strip() else (f"{where}: blank",)
        return
    if not isinstance(content, list) or not content:
        yield f"{where}: content is text or parts"
        return
    for part in content:
        match part:
            case {"type": "text", "text": str()}:
                pass
            case {"type": "image_url", "image_url": {"url": str(url)}} if _URL.fullmatch(url):
                pass
            case {"type": "file", "file": {"filename": str(), "file_data": str(url)}} if _URL.fullmatch(url):
                pass
            case {"type": "input_audio", "input_audio": {"data": str(), "format": "wav" | "mp3"}}:
                pass
            case _:
                yield f"{where}: unknown part {part}"


def _of_responses(body: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{name}: unknown argument" for name in body.keys() - _RESPONSES)
    if body.get("store") is not body.get("background", False) or not body.get("model"):
        yield "store must be true for background and is false else here, and a model is required"
    if "background" in body and (body["background"] is not True or body.get("stream") is not True):
        yield "background: only a stream can be read on"
    if (text := body.get("text")) is not None:
        form = dict(text["format"])
        yield from _of_format(form, form.pop("type"))
    searches = False
    if (tools := body.get("tools")) is not None:
        functions = [tool for tool in tools if tool.get("type") == "function"]
        yield from _of_tools(functions)
        searches = any(_is_search(tool) for tool in tools)
        yield from (f"tools: unknown {tool}" for tool in tools if tool not in functions and not _is_search(tool))
        if any("defer_loading" in tool for tool in functions):
            yield "tools.defer_loading: here no tool is loaded later"
    waiting: list[str] = []
    after_reasoning = False
    for place, item in enumerate(body.get("input") or [{}]):
        where, kind = f"input.{place}", item.get("type", "message")
        if after_reasoning and not (
            kind in ("function_call", "tool_search_call", "reasoning") or item.get("role") == "assistant"
        ):
            yield f"{where}: reasoning was provided without its required following item"
        after_reasoning = kind == "reasoning"
        match kind:
            case "reasoning":
                if not item.get("encrypted_content") or not isinstance(item.get("summary"), list):
                    yield f"{where}: Item {item.get('id')!r} not found"
            case "function_call":
                yield from _of_call(item, where)
                waiting.append(item.get("call_id", ""))
                if not 0 < len(item.get("call_id", "")) <= 64:
                    yield f"{where}: call_id"
            case "tool_search_call" | "tool_search_output" if not searches or item.get("execution") != "client":
                yield f"{where}: {kind} requires tools.tool_search"
            case "tool_search_call":
                if not isinstance(item.get("arguments"), dict):
                    yield f"{where}: arguments are an object"
                waiting.append(item.get("call_id", ""))
            case "tool_search_output":
                if item.get("call_id") not in waiting:
                    yield f"{where}: no search {item.get('call_id')!r} waits"
                else:
                    waiting.remove(item["call_id"])
                loaded = item["tools"]
                if not all(tool.get("type") == "function" and tool.get("defer_loading") is True for tool in loaded):
                    yield f"{where}: tools that are loaded later are functions with defer_loading"
                yield from _of_tools(loaded) if loaded else ()
                known = {tool.get("name") for tool in body.get("tools") or ()}
                yield from (f"{where}: {tool['name']} is there twice" for tool in loaded if tool["name"] in known)
            case "function_call_output":
                if item.get("call_id") not in waiting:
                    yield f"{where}: no call {item.get('call_id')!r} waits"
                else:
                    waiting.remove(item["call_id"])
                yield from _of_parts(item.get("output"), "input", where)
            case "message":
                yield from _of_parts(item.get("content"), "input" if item.get("role") == "user" else "output", where)
                if waiting and item.get("role") == "user":
                    yield f"{where}: calls {waiting} have no output"
            case _:
                yield f"{where}: unknown item {kind!r}"
        if kind != "reasoning" and "id" in item:
            yield f"{where}: Item {item['id']!r} not found: nothing is stored"
    yield from (f"calls {waiting} have no output" for _ in waiting[:1])


def _of_parts(content: Any, side: str, where: str) -> Iterator[str]:
    if isinstance(content, str):
        yield from () if content.strip() else (f"{where}: blank",)
        return
    for part in content if isinstance(content, list) else [None]:
        match part:
            case {"type": "input_text", "text": str()} if side == "input":
                pass
            case {"type": "input_image", "image_url": str(url)} if side == "input" and _URL.fullmatch(url):
                pass
            case {"type": "input_file", "filename": str(), "file_data": str(url)} if _URL.fullmatch(url):
                pass
            case {"type": "output_text", "text": str(), "annotations": list()} if side == "output":
                pass
            case {"type": "refusal", "refusal": str()} if side == "output":
                pass
            case _:
                yield f"{where}: unknown part {part}"
