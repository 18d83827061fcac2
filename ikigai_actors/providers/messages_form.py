"""A conversation as the Messages API has it: blocks to dicts, and back. Pure.

Anthropic's models and many servers use this protocol, and code in place of a model reads requests in this form
(`Request.messages`). A block with an original form (``own``) is sent in that form, unaltered.
"""

from base64 import standard_b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.providers.blocks import (
    THINKING,
    AudioBlock,
    Block,
    CallBlock,
    Content,
    DocumentBlock,
    ModelMessage,
    PictureBlock,
    ResultBlock,
    ServiceBlock,
    TextBlock,
    ThinkingBlock,
)

Blobs = Mapping[str, bytes]
"""The bytes of blobs, by their hash."""


def block_form(block: Block, blobs: Blobs) -> dict[str, Any]:
    """Return a block as a dict of the Messages API. Nested objects may be shared.

    Args:
        blobs: the bytes that blocks refer to.
    """
    match block:
        case TextBlock(own=None):
            return {"type": "text", "text": block.text}
        case CallBlock(own=None):
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
        case TextBlock() | ThinkingBlock() | CallBlock() | ServiceBlock():
            assert block.own is not None
            return dict(block.own)
        case ResultBlock(found_tools=(_, *_)):
            references = [{"type": "tool_reference", "tool_name": name} for name in block.found_tools]
            return {"type": "tool_result", "tool_use_id": block.call_id, "content": references}
        case ResultBlock():
            parts: list[Content] = [*block.attached, TextBlock(block.text)]
            content = [block_form(part, blobs) for part in parts] if block.attached else block.text
            form = {"type": "tool_result", "tool_use_id": block.call_id, "content": content}
            return {**form, "is_error": True} if block.is_error else form
        case PictureBlock() | DocumentBlock() if block.blob.sha256 not in blobs:
            return {"type": "text", "text": f"({block.blob.name or block.blob.media}: its bytes are missing)"}
        case PictureBlock() | DocumentBlock():
            data = standard_b64encode(blobs[block.blob.sha256]).decode("ascii")
            source = {"type": "base64", "media_type": block.blob.media, "data": data}
            return {"type": "image" if isinstance(block, PictureBlock) else "document", "source": source}
        case AudioBlock():
            return {"type": "text", "text": f"({block.blob.name or 'A sound'}: this model takes no audio)"}


def read_messages(messages: Sequence[Mapping[str, Any]]) -> tuple[ModelMessage, ...]:
    """Return messages in the API's form as messages of typed blocks, which keep that form beside them.

    Args:
        messages: the messages. A content may be a text.
    """
    names: dict[Any, str] = {}
    read: list[ModelMessage] = []
    for message in messages:
        content = message["content"]
        forms = [{"type": "text", "text": content}] if isinstance(content, str) else content
        names |= {form.get("id"): str(form.get("name")) for form in forms if form.get("type") == "tool_use"}
        read.append(ModelMessage(message["role"], tuple(_read(form, names) for form in forms)))
    return tuple(read)


def _read(form: Mapping[str, Any], names: Mapping[Any, str]) -> Block:
    match form:
        case {"type": "text", "text": str(text)}:
            return TextBlock(text, form)
        case {"type": "tool_use", "id": str(call_id), "name": str(name), "input": Mapping() as arguments}:
            return CallBlock(call_id, name, arguments, form)
        case {"type": "tool_result", "tool_use_id": str(call_id), "content": str(text), **rest} if not (
            rest.keys() - {"is_error"}
        ):
            return ResultBlock(call_id, names.get(call_id, ""), text, rest.get("is_error") is True)
        case {"type": kind} if kind in THINKING:
            return ThinkingBlock(str(form.get("thinking") or ""), form)
    return ServiceBlock(form)
