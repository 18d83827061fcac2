"""Pictures, PDFs and sounds that are attached to a text. The type of an attachment is recognised by its bytes alone.

    attachment("plan.png")                     # Attachment(image/png, 5,120 bytes)
    attachment(chart_bytes, "chart.png")       # what a tool has made

The name of a file does not matter. An attachment that no model service takes is refused here, before anything is
committed. If only some services take an attachment, it is left out of the requests to the others
(`ikigai_actors.providers.attachment_limits`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.whole_pictures import fault_of

LARGEST = 20 * 1024 * 1024
"""The most bytes of one attachment, and of all attachments of one message. Services take requests of 32 MB, and base64
makes attachments larger.
"""
MOST_PICTURES = 100
"""The most attachments of one message."""
MOST_PIXELS = 8_000
"""The most pixels of a picture along one side."""

_MOST_MB = LARGEST // 2**20
_NAME_LENGTH = 200

_PREFIXES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"%PDF-", "application/pdf"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (4, b"ftypM4A", "audio/mp4"),
)
"""The first bytes by which a file's type is recognised: their offset, the bytes, and the type."""
_MPEG = (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
_KNOWN = "PNG, JPEG, GIF and WebP pictures, PDF, and sounds as WAV, MP3, Ogg, FLAC or M4A"
_SOF = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # the JPEG segments that hold the size


@dataclass(frozen=True, slots=True)
class Attachment:
    """A picture, a PDF or a sound. The function `attachment` makes one."""

    data: bytes = field(repr=False)
    """The bytes of the attachment."""
    media: str
    """The media type, such as ``image/png``."""
    sha256: str
    """The SHA-256 of the bytes, in hexadecimal digits. The database stores equal bytes once."""
    name: str = ""
    """The name of the file, without its directory; empty if there was none."""

    def stored(self) -> dict[str, Any]:
        """Return the dict by which a stored message refers to the attachment."""
        stored = {"sha256": self.sha256, "media": self.media, "size": len(self.data), "name": self.name}
        pixels = max(size_of(self.data) or (0, 0))
        return {**stored, "pixels": pixels} if pixels else stored


Attachable = str | Path | bytes | Attachment
"""The argument types from which `attachment` makes an attachment: the path of a file, bytes, or an attachment."""


def attachment(source: Attachable, name: str = "") -> Attachment:
    """Read a file or bytes, and check that they can be attached to a text.

    Args:
        source: the path of a file, or the bytes themselves.
        name: the name of the attachment; empty for the name of the file.

    Raises:
        BadInput: the file cannot be read, is too large, is of a type that no model takes, or is an incomplete picture.
    """
    if isinstance(source, Attachment):
        return source
    if not isinstance(name, str):
        raise BadInput(f"Expected the name of an attachment as text; got {shown(name)}.")
    data: object = source
    if isinstance(source, str | Path):
        data, name = _read(Path(source)), name or Path(source).name
    if not isinstance(data, bytes):
        raise BadInput(f"Expected an attachment as the path of a file, or as bytes; got {shown(source)}.")
    what = repr(name) if name else f"an attachment of {len(data):,} bytes"
    if len(data) > LARGEST:
        raise BadInput(f"Expected {what} to have {LARGEST // 2**20} MB at most; it has {len(data) / 2**20:,.1f} MB.")
    media = media_of(data)
    if media is None:
        raise BadInput(f"Expected {what} to be of a type that models take: {_KNOWN}.")
    if max(size_of(data) or (0, 0)) > MOST_PIXELS:
        raise BadInput(
            f"Expected the picture {what} to have {MOST_PIXELS:,} pixels along a side at most: make it smaller."
        )
    if fault := fault_of(data, media):
        raise BadInput(f"Expected {what} to be a whole picture, but {fault}: make it again, or load it again.")
    printable = "".join(char if char.isprintable() and not "\ud800" <= char <= "\udfff" else "_" for char in name)
    return Attachment(data, media, sha256(data).hexdigest(), printable[:_NAME_LENGTH])


def attachments(sources: object) -> tuple[Attachment, ...]:
    """Read and check the attachments of one message.

    Raises `BadInput`, also when they are too many or too large together.
    """
    if isinstance(sources, str | bytes | Path | Attachment) or not isinstance(sources, Iterable):
        raise BadInput(f"Expected attach to be a list of paths or bytes; got {shown(sources)}.")
    attachments = tuple([attachment(source) for source in sources])
    if attachments:
        check_sum(attachments)
    return attachments


def check_sum(attachments: tuple[Attachment, ...]) -> None:
    """Raise `BadInput` if there are more attachments, or more bytes of them, than one message may have."""
    if len(attachments) > MOST_PICTURES:
        raise BadInput(f"Expected {MOST_PICTURES} attachments at most; got {len(attachments)}.")
    if (total := sum(len(file.data) for file in attachments)) > LARGEST:
        had = f"{total / 2**20:,.1f} MB"
        raise BadInput(f"Expected the attachments to have {_MOST_MB} MB together at most; they have {had}.")


def media_of(data: bytes) -> str | None:
    """Recognise the media type from bytes, or from the first 16 of them; None for a type that no model takes."""
    for start, mark, media in _PREFIXES:
        if data[start : start + len(mark)] == mark and (start != 8 or data[:4] == b"RIFF"):
            return media
    return "audio/mpeg" if data[:2] in _MPEG else None


def size_of(data: bytes) -> tuple[int, int] | None:
    """Read the width and height of a picture in pixels from its bytes; None if they are not found there."""
    match media_of(data):
        case "image/png" if len(data) >= 24:
            return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        case "image/gif" if len(data) >= 10:
            return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
        case "image/jpeg":
            return _jpeg_size(data)
        case "image/webp" if len(data) >= 30:
            return _webp_size(data)
    return None


def name_and_size(stored: Mapping[str, Any]) -> str:
    """Describe a stored attachment in a few words: its name, type and size."""
    size = stored.get("size")
    amount = f"{size / 2**20:,.1f} MB" if isinstance(size, int) and size >= 2**20 else f"{size:,} bytes"
    return ", ".join(str(part) for part in (stored.get("name"), stored.get("media"), amount) if part)


def _read(path: Path) -> bytes:
    try:
        with path.expanduser().open("rb") as file:
            return file.read(LARGEST + 1)  # it may be a device without end
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInput(f"Expected a file to attach at {str(path)!r}: {reason}.") from error


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _SOF:
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        at += 1 if marker == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None
