"""The rules by which the Messages API rejects a request, and a little more.

The real API joins messages of the same role, and lets the last message begin the reply. Here both are violations,
because the runtime never sends such requests. Thinking must have the signature that `sign` returns for the model.
"""

import hashlib
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ikigai_actors.attachments import size_of

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_LEAST_THINKING = 1_024
_USER_BLOCKS = {"text", "image", "document", "tool_result"}
_NOT_OF_REPLIES = {"tool_result", "image", "document", "reasoning"}
"""The types of blocks that no reply has: they belong to user messages, or to another service."""

_THINKING = {"thinking", "redacted_thinking"}
MOST_PICTURES, MANY_PICTURES = 100, 20
"""The most pictures and documents of a request, and the number of pictures above which they count as many."""
PIXELS, PIXELS_OF_MANY = 8_000, 2_000
"""The most pixels of a picture along a side; and the most if there are many pictures."""
PICTURE_SIZE = 5 * 2**20
"""The most bytes of a picture as it is sent."""
MAX_BREAKPOINTS = 4
"""The most blocks with ``cache_control``; one at the top level counts as well."""


def sign(model: str, text: str) -> str:
    """Return the signature of a thinking block, for the model that wrote it."""
    return hashlib.sha256(f"{model}\0{text}".encode()).hexdigest()


def thinking(model: str, text: str) -> dict[str, Any]:
    """Return a thinking block with the signature of a model."""
    return {"type": "thinking", "thinking": text, "signature": sign(model, text)}


def redacted_thinking(model: str, text: str) -> dict[str, Any]:
    """Return a thinking block that only its model can read; its data has the signature."""
    return {"type": "redacted_thinking", "data": f"{text.encode().hex()}.{sign(model, text)}"}


def violations(request: Mapping[str, Any]) -> list[str]:
    """Return all violations in the JSON body of a request; empty when the request is accepted."""
    return [
        *_of_arguments(request),
        *_of_tools(request.get("tools", ())),
        *_of_system(request.get("system", "")),
        *_of_messages(request.get("messages"), request.get("model")),
        *_of_pictures(request.get("messages")),
        *_of_references(request),
        *_of_breakpoints(request),
    ]


def _of_arguments(request: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(request.get("model"), str) or not request["model"]:
        yield "model: Field required"
    max_tokens = request.get("max_tokens")
    if not isinstance(max_tokens, int) or max_tokens < 1:
        yield "max_tokens: Field required"
    thinking = request.get("thinking") or {}
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens")
        if not isinstance(budget, int) or budget < _LEAST_THINKING:
            yield f"thinking.budget_tokens: Input should be a whole number, {_LEAST_THINKING} or more"
        elif isinstance(max_tokens, int) and budget >= max_tokens:
            yield "max_tokens: must be greater than thinking.budget_tokens"


def _of_tools(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = [tool.get("name") for tool in tools]
    if len(names) != len(set(names)):
        yield "tools: Tool names must be unique."
    if tools and all(tool.get("defer_loading") for tool in tools):
        yield "tools: At least one tool must have defer_loading=false."
    for place, tool in enumerate(tools):
        if tool.get("defer_loading") and "cache_control" in tool:
            yield f"tools.{place}: a tool cannot have both defer_loading and cache_control"
        where, schema = f"tools.{place}.custom", tool.get("input_schema")
        if not isinstance(tool.get("name"), str) or not _NAME.fullmatch(tool["name"]):
            yield f"{where}.name: should match {_NAME.pattern}"
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            yield f"{where}.input_schema.type: Input should be 'object'"
            continue
        if combined := schema.keys() & {"oneOf", "allOf", "anyOf"}:
            yield f"{where}.input_schema: no {', '.join(sorted(combined))} is supported at the top level"
        if not all(map(_PROPERTY.fullmatch, schema.get("properties", ()))):
            yield f"{where}.input_schema.properties: keys should match {_PROPERTY.pattern}"


def _of_references(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield violations by references to tools: only to tools that are loaded later, in results without other blocks."""
    later = {tool.get("name") for tool in request.get("tools", ()) if tool.get("defer_loading")}
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        for block in message["content"] if isinstance(message["content"], list) else ():
            parts = block.get("content") if isinstance(block, Mapping) else None
            types = {part.get("type") for part in parts} if isinstance(parts, list) else set()
            if "tool_reference" not in types or not isinstance(parts, list):
                continue
            if types != {"tool_reference"}:
                yield f"tool_result: a result with references has nothing else, got {sorted(map(str, types))}"
            named = {part.get("tool_name") for part in parts}
            yield from (f"Tool reference {name!r} not found in available tools" for name in named - later)


def _of_system(system: Any) -> Iterator[str]:
    if isinstance(system, str):
        return
    if not isinstance(system, list):
        yield "system: Input should be a string or a list"
        return
    for index, block in enumerate(system):
        yield from _of_text(block, f"system.{index}")
        if isinstance(block, Mapping) and block.get("type") != "text":
            yield f"system.{index}: Input should be a text block"


def _of_breakpoints(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield violations by cache marks: more than four, or one on a block that cannot be cached."""
    system, messages = request.get("system", ""), request.get("messages")
    blocks = [*request.get("tools", ()), *(system if isinstance(system, list) else ())]
    for message in messages if isinstance(messages, list) else ():
        blocks += message["content"] if isinstance(message["content"], list) else ()
    marked = [block for block in (*blocks, request) if isinstance(block, Mapping) and "cache_control" in block]
    if len(marked) > MAX_BREAKPOINTS:
        yield f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {len(marked)}."
    for block in marked:
        if block["cache_control"] != {"type": "ephemeral"}:
            yield f"cache_control: Input should be an object of type 'ephemeral', got {block['cache_control']!r}"
        if block.get("type") in _THINKING:
            yield f"{block['type']}.cache_control: Extra inputs are not permitted"
        if block.get("type") == "text" and not block.get("text"):
            yield "cache_control cannot be set for empty text blocks"


def _of_messages(messages: Any, model: Any) -> Iterator[str]:
    if not isinstance(messages, Sequence) or not messages:
        yield "messages: at least one message is required"
        return
    if messages[-1]["role"] != "user":
        yield "messages: the last one must be the user's"
    seen: set[str] = set()
    expected, calls = "user", list[str]()
    for position, message in enumerate(messages):
        where = f"messages.{position}"
        if message["role"] != expected:
            yield f"{where}: expected role {expected!r}, got {message['role']!r}"
        expected = "assistant" if message["role"] == "user" else "user"
        if not isinstance(message["content"], list) or not message["content"]:
            yield f"{where}: content must be a list of at least one block"
            continue
        for index, block in enumerate(message["content"]):
            yield from _of_text(block, f"{where}.content.{index}")
        if not all(map(_is_block, message["content"])):
            continue
        if message["role"] == "user":
            yield from _of_user(message["content"], calls, where)
            calls = []
        else:
            yield from _of_assistant(message["content"], model, seen, where)
            calls = [block.get("id") for block in message["content"] if block.get("type") == "tool_use"]


def _is_block(block: Any) -> bool:
    return isinstance(block, Mapping) and isinstance(block.get("type"), str)


def _of_text(block: Any, where: str) -> Iterator[str]:
    if not _is_block(block):
        yield f"{where}: a block must be an object with a type"
    elif block["type"] == "text" and not str(block.get("text", "")).strip():
        yield f"{where}: text content blocks must contain non-whitespace text"


def _of_user(content: Sequence[Mapping[str, Any]], calls: Sequence[str], where: str) -> Iterator[str]:
    types = [block.get("type") for block in content]
    yield from (f"{where}: a user message may not hold {kind!r}" for kind in types if kind not in _USER_BLOCKS)
    results = [block for block in content if block.get("type") == "tool_result"]
    if types[: len(results)] != ["tool_result"] * len(results):
        yield f"{where}: tool_result blocks must come first"
    answered = [str(block.get("tool_use_id")) for block in results]
    if len(answered) != len(set(answered)):
        yield f"{where}: each tool_use must have a single result"
    for call_id in calls:
        if call_id not in answered:
            yield f"{where}: `tool_use` {call_id} was found without a `tool_result` block immediately after"
    for block in results:
        if block.get("tool_use_id") not in calls:
            yield f"{where}: unexpected `tool_use_id` {block.get('tool_use_id')} in a `tool_result` block"
        parts = block.get("content")
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _of_text(part, f"{where}.tool_result.content.{index}")
        if block.get("is_error"):
            yield from _of_error(parts, where)


def _of_error(content: Any, where: str) -> Iterator[str]:
    if not str(content or "").strip():
        yield f"{where}: content cannot be empty if `is_error` is true"
    if isinstance(content, list) and any(part.get("type") != "text" for part in content):
        yield f'{where}: all content must be type "text" if `is_error` is true'


def _of_pictures(messages: Any) -> Iterator[str]:
    """Yield violations by pictures: too many, too many bytes, or too many pixels, fewer if there are many pictures."""
    sources = list(_sources(messages))
    pictures = [source for source in sources if str(source.get("media_type")).startswith("image/")]
    if len(sources) > MOST_PICTURES:
        yield f"messages: {len(sources)} images and documents exceed the maximum of {MOST_PICTURES}"
    most = PIXELS_OF_MANY if len(pictures) > MANY_PICTURES else PIXELS
    for source in pictures:
        data = str(source.get("data", ""))
        if len(data) > PICTURE_SIZE:
            yield f"image exceeds 5 MB maximum: {len(data)} bytes > {PICTURE_SIZE} bytes"
        if max(size_of(_beginning(data)) or (0, 0)) > most:
            yield f"image dimensions exceed max allowed size: {most} pixels"


def _sources(content: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the sources of all attachments in blocks, and in the blocks within them."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping):
            source = block.get("source")
            yield from ((source,) if isinstance(source, Mapping) else _sources(block.get("content")))


def _beginning(data: str) -> bytes:
    """Return the first bytes of a picture, which contain its size in pixels, from its base64 text."""
    try:
        return b64decode(data[:40_000])
    except ValueError:
        return b""


def _of_assistant(content: Sequence[Mapping[str, Any]], model: Any, seen: set[str], where: str) -> Iterator[str]:
    if content[-1].get("type") in _THINKING:
        yield f"{where}: The final block in an assistant message cannot be `thinking`."
    for block in content:
        match block.get("type"):
            case "tool_use":
                yield from _of_call(block, seen, where)
            case "thinking" | "redacted_thinking":
                if not _is_signed(block, model):
                    yield f"{where}: Invalid `signature` in `{block['type']}` block"
            case kind if kind in _NOT_OF_REPLIES:
                yield f"{where}: an assistant message may not hold {kind!r}"


def _of_call(block: Mapping[str, Any], seen: set[str], where: str) -> Iterator[str]:
    call_id = block.get("id")
    if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
        yield f"{where}: tool_use.id {call_id!r} should match {_ID.pattern}"
    elif call_id in seen:
        yield f"{where}: `tool_use` ids must be unique, {call_id} is not"
    else:
        seen.add(call_id)
    if not isinstance(block.get("name"), str) or not _NAME.fullmatch(block["name"]):
        yield f"{where}: tool_use.name {block.get('name')!r} should match {_NAME.pattern}"
    if not isinstance(block.get("input"), dict):
        yield f"{where}: tool_use.input: Input should be a valid dictionary"


def _is_signed(block: Mapping[str, Any], model: Any) -> bool:
    if block["type"] == "thinking":
        return bool(block.get("signature") == sign(str(model), block.get("thinking", "")))
    text, _, signature = str(block.get("data", "")).partition(".")
    try:
        return signature == sign(str(model), bytes.fromhex(text).decode())
    except ValueError:  # no data that `redacted_thinking` has made
        return False
