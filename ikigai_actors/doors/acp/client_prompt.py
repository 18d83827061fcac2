"""Converts the content blocks of a client of ACP to a prompt. Pure."""

import base64
import binascii
from collections.abc import Sequence
from typing import NamedTuple

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from ikigai_actors.errors import BadInput

PromptBlock = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)


class ClientPrompt(NamedTuple):
    """The text and the attachments of a prompt that a client of ACP has sent."""

    text: str
    attached: tuple[bytes, ...] = ()


def prompt_of(blocks: Sequence[PromptBlock]) -> ClientPrompt:
    """Convert a client's content blocks to a prompt. Raises `BadInput`."""
    texts, attached = list[str](), list[bytes]()
    for block in blocks:
        said = _block(block)
        if isinstance(said, bytes):
            attached.append(said)
        elif said:
            texts.append(said)
    return ClientPrompt("\n".join(texts) or ("What is this?" if attached else ""), tuple(attached))


def _block(block: PromptBlock) -> str | bytes:
    match block:
        case TextContentBlock():
            return block.text
        case ImageContentBlock() | AudioContentBlock():
            return _bytes(block.data)
        case ResourceContentBlock():
            return f"[{block.name or block.uri}]({block.uri})"
        case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
            return f"{resource.uri}:\n{resource.text}"
    return _bytes(block.resource.blob)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput("Expected the data of an image or of audio in base64.") from error
