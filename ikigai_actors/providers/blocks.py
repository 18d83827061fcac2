"""The typed blocks of a conversation's messages, independent of any service's protocol.

    ModelMessage("user", (PictureBlock(Blob(sha256, "image/png", 5_120, "plan.png")), TextBlock("What is this?")))

A provider translates the blocks to the protocol of its service. A block that a service sent has the original form as
``own``, if that service may see it again (`read_block` decides). A provider of the same protocol sends this form
unaltered.

A log stores the blocks of a reply as the dicts that a provider gave (`Reply.blocks`). Three types have the same meaning
for all services: ``text``, ``tool_use``, and ``thinking``, which has a text. Any other type is the service's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""The types of stored blocks that hold thinking: they are sent back only to the model that made them."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A reference to stored bytes, such as a picture, a document or a sound, by their hash."""

    sha256: str
    """The hash of the bytes, 64 hexadecimal digits."""
    media: str
    """The media type, as ``image/png``."""
    size: int
    """The number of bytes."""
    name: str = ""
    """The name of the original file; empty if unknown."""
    pixels: int = 0
    """The pixels of a picture along its longer side; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A text. Never blank."""

    text: str
    own: Mapping[str, Any] | None = None
    """The block as the asked service sent it; None for other text."""


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """Earlier thinking of the asked model, to be sent back unaltered."""

    text: str
    """The thinking text; empty if only the model can read it."""
    own: Mapping[str, Any]
    """The block as the service sent it, with its signature."""


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A call of a tool that a reply asks for."""

    id: str
    """Unique in the conversation: letters, digits, ``_`` and ``-``."""
    name: str
    """Letters, digits, ``_`` and ``-``; 128 at most."""
    input: Mapping[str, Any]
    own: Mapping[str, Any] | None = None
    """As `TextBlock.own`, with this id, name and input."""


@dataclass(frozen=True, slots=True)
class PictureBlock:
    """A picture."""

    blob: Blob


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """A PDF."""

    blob: Blob


@dataclass(frozen=True, slots=True)
class AudioBlock:
    """A sound."""

    blob: Blob


Attached = PictureBlock | DocumentBlock | AudioBlock
"""A block that refers to a blob."""

Content = TextBlock | Attached
"""A block that a person or a tool can give: text, or a reference to a blob."""


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """The result of a call, at the beginning of the message after the call."""

    call_id: str
    name: str
    """The tool's name."""
    text: str
    """Never blank."""
    is_error: bool = False
    attached: tuple[Attached, ...] = ()
    """Attachments of the result. For an error they come after all results, and this is empty."""
    found_tools: tuple[str, ...] = ()
    """The tools whose descriptions the service loads at this result; the text names them too."""


@dataclass(frozen=True, slots=True)
class ServiceBlock:
    """A block with a meaning only for the asked service, which had sent it."""

    own: Mapping[str, Any] = field(default_factory=dict)
    """The block as the service sent it."""


Block = TextBlock | ThinkingBlock | CallBlock | ResultBlock | PictureBlock | DocumentBlock | AudioBlock | ServiceBlock


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """A message of a conversation in the form for a model."""

    role: str
    """``user`` or ``assistant``. They alternate; the first and the last message are the user's."""
    blocks: Sequence[Block]
    """The blocks, at least one."""


def attached(blob: Blob) -> Attached:
    """Return the block that refers to a blob: a picture, a document or a sound, by the blob's media type."""
    match blob.media.partition("/")[0]:
        case "image":
            return PictureBlock(blob)
        case "audio":
            return AudioBlock(blob)
    return DocumentBlock(blob)


def blobs_in(block: Block) -> tuple[Blob, ...]:
    """Return the blobs to which a block refers."""
    match block:
        case PictureBlock() | DocumentBlock() | AudioBlock():
            return (block.blob,)
        case ResultBlock():
            return tuple(part.blob for part in block.attached)
    return ()


def read_block(stored: Mapping[str, Any], made_by: str, asked: str) -> Block | None:
    """Return a stored block in the form for the asked model; None if that model must not see it.

    Args:
        stored: the block, of any type but ``tool_use``.
        made_by: the model that made it, ``provider:model``.
        asked: the model to which the block will be sent.
    """
    same_service = made_by.partition(":")[0] == asked.partition(":")[0]
    match stored.get("type"):
        case "text":
            text = str(stored.get("text") or "")
            return TextBlock(text, stored if same_service else None) if text.strip() else None
        case kind if kind in THINKING:
            return ThinkingBlock(str(stored.get("thinking") or ""), stored) if made_by == asked else None
        case kind:
            return ServiceBlock(stored) if kind and same_service else None
