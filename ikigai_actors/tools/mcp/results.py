"""Converts the answers of an MCP server to results for models, even if they violate the protocol. Pure.

When an answer comes, the tool has run, so every readable part belongs to the result: text blocks as text, other blocks
as JSON, and the structured content if there are no blocks. The client refuses an answer with a single broken part, so
such parts are replaced before the client gets the answer.
"""

import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from mcp.types import (
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from mcp.types.methods import parse_server_result

from ikigai_actors.attachments import Attachment, attachment, name_and_size
from ikigai_actors.errors import BadInput
from ikigai_actors.tools.function import Result

_CALL = "tools/call"
_DATA = ("image", "audio")
"""The types of blocks with bytes. The bytes themselves show the media type."""
_COMPLETE = {"resultType": "complete"}
"""The fields that later versions ask for in every result."""


def mended(answer: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """Return an answer without violations of this version of the protocol, so that the client accepts it.

    An answer without violations is returned unchanged.
    """
    if _fits(answer, version):
        return answer
    parts = answer.get("content")
    blocks = [] if parts is None else parts if isinstance(parts, list) else [parts]
    content = [_block(block, version) for block in blocks]
    structured = answer.get("structuredContent")
    if structured is not None and not _fits({**_COMPLETE, "content": [], "structuredContent": structured}, version):
        content = content or [_text(structured)]
        structured = None
    structured_part = {"structuredContent": structured} if structured is not None else {}
    return {**_COMPLETE, "content": content, **structured_part, "isError": answer.get("isError") in (True, "true")}


def _block(block: object, version: str) -> Mapping[str, Any]:
    """Return a block that the client accepts: the block itself, or else its JSON as a text block."""
    if not isinstance(block, Mapping):
        return _text(block)
    kinds = [block if "type" in block else {"type": "text", **block}]
    if block.get("type") in _DATA and not isinstance(block.get("mimeType"), str):
        kinds.append({**block, "mimeType": "application/octet-stream"})
    return next((kind for kind in kinds if _fits({**_COMPLETE, "content": [kind]}, version)), _text(block))


def _text(value: object) -> Mapping[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}


def _fits(answer: Mapping[str, Any], version: str) -> bool:
    try:
        parse_server_result(_CALL, version, answer)
    except ValueError:  # a `ValidationError`, or too many levels
        return False
    return True


def result_of_call(answer: CallToolResult) -> Result:
    """Convert an answer to a result: its blocks, one below the other; without blocks, its structured content."""
    text = "\n".join(map(readable, answer.content))
    if not answer.content and answer.structured_content is not None:
        text = json.dumps(answer.structured_content)
    attached = tuple(attachment for block in answer.content if (attachment := attached_to(block)) is not None)
    return Result(text, bool(answer.is_error), attached)


def attached_to(block: ContentBlock) -> Attachment | None:
    """Return the picture, PDF or sound in a block of a result, if a model can take it; else None."""
    resource = block.resource if isinstance(block, EmbeddedResource) else block
    encoded = getattr(resource, "blob", None) or getattr(resource, "data", None)
    if not isinstance(encoded, str):
        return None
    try:
        return attachment(b64decode(encoded, validate=True), str(getattr(resource, "uri", "")).rpartition("/")[2])
    except (ValueError, BadInput):
        return None


def readable(block: ContentBlock) -> str:
    """Return a block of a result as text; for other blocks, a description."""
    if (attachment := attached_to(block)) is not None:
        return f"[{name_and_size(attachment.stored())}]"
    match block:
        case TextContent():
            return block.text
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return f"[{resource.uri}]\n{resource.text}"
        case EmbeddedResource(resource=resource):
            return f"[{resource.uri}: {_sized(resource.mime_type, resource.blob)}]"  # type: ignore[union-attr]  # no text: the case above
        case ResourceLink():
            return f"[{block.uri}: {' '.join(filter(None, (block.name, block.description)))}]"
    return f"[{block.type}: {_sized(block.mime_type, block.data)}]"


def _sized(kind: str | None, base64: str) -> str:
    return f"{kind or 'of unknown type'}, {len(base64) * 3 // 4:,} bytes, which cannot be shown as text"
