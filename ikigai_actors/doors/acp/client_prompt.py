"""The content blocks of a client as a prompt. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput


class ClientPrompt(NamedTuple):
    """The content of a client's blocks."""

    text: str
    attached: tuple[bytes, ...] = ()


def prompt_of(blocks: object) -> ClientPrompt:
    """The prompt that a client's blocks are. Raises `BadInput`."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise BadInput("Expected the prompt as a list of content blocks.")
    texts, attached = list[str](), list[bytes]()
    for block in blocks:
        said, data = _block(block)
        texts += [said] if said else []
        attached += [data] if data is not None else []
    return ClientPrompt("\n".join(texts) or ("What is this?" if attached else ""), tuple(attached))


def _block(block: Mapping[str, Any]) -> tuple[str, bytes | None]:
    match block:
        case {"type": "text", "text": str(text)}:
            return text, None
        case {"type": "image" | "audio", "data": str(data)}:
            return "", _bytes(data)
        case {"type": "resource_link", "uri": str(uri)}:
            return f"[{block.get('name') or uri}]({uri})", None
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            return f"{uri}:\n{text}", None
        case {"type": "resource", "resource": {"blob": str(data)}}:
            return "", _bytes(data)
    raise BadInput(f"Blocks of type {block.get('type')!r} are not understood: send text, links, images or audio.")


def _bytes(text: str) -> bytes:
    import base64
    import binascii

    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput("Expected the data of an image or of audio in base64.") from error
