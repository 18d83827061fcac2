"""The smallest pictures, documents and sounds of each type, none more than its head; and whole pictures, painted."""

import struct
import zlib
from collections.abc import Sequence

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    + (640).to_bytes(4, "big")
    + (480).to_bytes(4, "big")
    + b"\x08\x02\x00\x00\x00"
)
GIF = b"GIF89a" + (320).to_bytes(2, "little") + (200).to_bytes(2, "little") + b"\x00"
JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc2\x00\x11\x08" + (100).to_bytes(2, "big") + (300).to_bytes(2, "big") + b"\x03"
VP8 = b"\x9d\x01\x2a"
WEBP_LOSSY = (
    b"RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00"
    + VP8
    + (640).to_bytes(2, "little")
    + (480).to_bytes(2, "little")
)
WEBP_PLAIN = b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f" + (639 | 479 << 14).to_bytes(4, "little") + b"\x00" * 6
WEBP = (
    b"RIFF\x00\x00\x00\x00WEBPVP8X\x00\x00\x00\x00\x00\x00\x00\x00"
    + (639).to_bytes(3, "little")
    + (479).to_bytes(3, "little")
)
PDF = b"%PDF-1.7\n%%EOF\n"
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "
MP3 = b"ID3\x04\x00\x00"
MP3_PLAIN = b"\xff\xfb\x90\x64"
OGG = b"OggS\x00\x02"
FLAC = b"fLaC\x00\x00\x00\x22"
M4A = b"\x00\x00\x00\x20ftypM4A \x00"

BY_TYPE = {
    "image/png": [PNG], "image/gif": [GIF], "image/jpeg": [JPEG], "image/webp": [WEBP, WEBP_LOSSY, WEBP_PLAIN],
    "application/pdf": [PDF], "audio/wav": [WAV], "audio/mpeg": [MP3, MP3_PLAIN], "audio/ogg": [OGG],
    "audio/flac": [FLAC], "audio/mp4": [M4A],
}  # fmt: skip


def painted(rows: Sequence[Sequence[tuple[int, int, int, int]]]) -> bytes:
    """A whole PNG picture of these pixels: red, green, blue and opacity."""
    size = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 6, 0, 0, 0)
    lines = b"".join(b"\0" + bytes(part for pixel in row for part in pixel) for row in rows)
    parts = [(b"IHDR", size), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    return PNG[:8] + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
