"""The typed blocks of a conversation's messages, in nobody's protocol.

    ModelMessage("user", (PictureBlock(Blob(sha256, "image/png", 5_120, "plan.png")), TextBlock("What is this?")))

A provider translates from these into what its service speaks. A block that a service sent has its form beside it as
``own``, where that service may see it again (`read_block` decides): whoever speaks its protocol sends that unaltered.

A log stores the blocks of a reply as the dicts that a provider gave (`Reply.blocks`). Three types of them mean the same
to everybody, whichever service made them: ``text``, ``tool_use``, and ``thinking``, which has a text. Any other type is
the service's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""The types of stored blocks that are a model's thoughts: only that model gets them back."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that are stored once, under their hash: a picture, a document, a sound. This refers to them."""

    sha256: str
    """The hash of the bytes, 64 hexadecimal digits."""
    media: str
    """The type, as ``image/png``."""
    size: int
    """How many bytes."""
    name: str = ""
    """The name of the file that it was, if it had one."""
    pixels: int = 0
    """The pixels of a picture along its longer side; 0 where they are not known."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A text. Never blank."""

    text: str
    own: Mapping[str, Any] | None = None
    """The form in which the service that is asked sent it; None for any other text."""


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """An earlier thought of the model that is asked, to be sent back to it unaltered."""

    text: str
    """The thought; empty where only the model can read it."""
    own: Mapping[str, Any]
    """The form in which the service sent it, with its signature."""


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
"""A block that a person or a tool can give: a text, or one that refers to a blob."""


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """The result of a call. It is in the message after the call, before all else."""

    call_id: str
    name: str
    """The tool's name."""
    text: str
    """Never blank."""
    is_error: bool = False
    attached: tuple[Attached, ...] = ()
    """Pictures and the like that the tool gave beside the text. An error has none: they follow the results."""
    found: tuple[str, ...] = ()
    """The tools to which it refers, so that the service loads their descriptions here; the text names them, too."""


@dataclass(frozen=True, slots=True)
class ServiceBlock:
    """A block that means something only to the service that sent it, which is asked now."""

    own: Mapping[str, Any] = field(default_factory=dict)
    """The form in which it came."""


Block = TextBlock | ThinkingBlock | CallBlock | ResultBlock | PictureBlock | DocumentBlock | AudioBlock | ServiceBlock


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """A message of a conversation, as a model is to see it."""

    role: str
    """``user`` or ``assistant``. They alternate; the first and the last message are the user's."""
    blocks: Sequence[Block]
    """At least one."""


def attached(blob: Blob) -> Attached:
    """The block that refers to a blob, by its type."""
    match blob.media.partition("/")[0]:
        case "image":
            return PictureBlock(blob)
        case "audio":
            return AudioBlock(blob)
    return DocumentBlock(blob)


def blobs_in(block: Block) -> tuple[Blob, ...]:
    """The blobs to which a block refers."""
    match block:
        case PictureBlock() | DocumentBlock() | AudioBlock():
            return (block.blob,)
        case ResultBlock():
            return tuple(part.blob for part in block.attached)
    return ()


def read_block(stored: Mapping[str, Any], made_by: str, asked: str) -> Block | None:
    """A stored block of a reply, as the model that is asked may see it; None if it must not.

    Args:
        stored: the block, of any type but ``tool_use``.
        made_by: the model that made it, ``provider:model``.
        asked: the model that will be sent it.
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
