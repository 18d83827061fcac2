"""The smallest pictures, documents and sounds of each type, their parts whole; and whole pictures, painted."""

import struct
import zlib
from collections.abc import Sequence


def _png(size: bytes, pixels: bytes) -> bytes:
    parts = [(b"IHDR", size), (b"IDAT", pixels), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


def _webp(*parts: tuple[bytes, bytes]) -> bytes:
    body = b"WEBP" + b"".join(name + struct.pack("<I", len(data)) + data for name, data in parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


PNG = _png(struct.pack(">IIBBBBB", 640, 480, 1, 0, 0, 0, 0), zlib.compress(bytes(81 * 480)))
GARBLED = _png(struct.pack(">IIBBBBB", 640, 480, 1, 0, 0, 0, 0), b"no pixels")
"""A picture whose parts are whole, and whose pixels nobody can decode."""
GIF = (
    b"GIF89a" + struct.pack("<HHBBB", 320, 200, 0, 0, 0) + b"," + struct.pack("<HHHHB", 0, 0, 320, 200, 0) + b"\x02\0;"
)
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc2\x00\x11\x08"
    + struct.pack(">HH", 100, 300)
    + b"\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00\xff\xda\x00\x02\xff\xd9"
)
VP8 = b"\0\0\0\x9d\x01\x2a"
WEBP_LOSSY = _webp((b"VP8 ", VP8 + struct.pack("<HH", 640, 480)))
WEBP_PLAIN = _webp((b"VP8L", b"\x2f" + (639 | 479 << 14).to_bytes(4, "little") + bytes(6)))
WEBP = _webp(
    (b"VP8X", bytes(4) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")), (b"VP8L", b"\x2f" + bytes(5))
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
    return _png(size, zlib.compress(lines))
