"""Checks whether a picture is whole, by its parts and without decoding its pixels. Pure.

Services refuse a picture with a missing or damaged part, and so refuse the whole request and all later requests,
because each sends the history again. So such a picture is refused before it is stored. Faults that decoders tolerate
are no faults here: bytes after the end, unknown parts, and in a GIF a missing end mark.
"""

import zlib

_CUT_OFF = "it ends too early, as a file that was cut off"
_DAMAGED = "a part of it is damaged"
_EMPTY = "it has a head and no pixels"

_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
"""The markers of JPEG that have no length."""
_START_OF_SCAN, _END = 0xDA, b"\xff\xd9"


def fault_of(data: bytes, media: str) -> str:
    """Return the fault of a picture of this type, in words; empty for a whole picture, and for another type."""
    match media:
        case "image/png":
            return _fault_of_png(data)
        case "image/jpeg":
            return _fault_of_jpeg(data)
        case "image/gif":
            return _fault_of_gif(data)
        case "image/webp":
            return _fault_of_webp(data)
    return ""


def _fault_of_png(data: bytes) -> str:
    at, pixels = 8, False
    while at + 12 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 12 + length
        if end > len(data):
            return _CUT_OFF if kind.isalpha() else _DAMAGED
        if zlib.crc32(memoryview(data)[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            return _DAMAGED
        if kind == b"IEND":
            return "" if pixels else _EMPTY
        at, pixels = end, pixels or kind == b"IDAT"
    return _CUT_OFF


def _fault_of_jpeg(data: bytes) -> str:
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return _DAMAGED
        marker = data[at + 1]
        if marker == 0xFF:  # a filler
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker == _START_OF_SCAN:
            return "" if data.find(_END, at) >= 0 else _CUT_OFF
        elif marker == _END[1]:
            return _EMPTY
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return _CUT_OFF


def _fault_of_gif(data: bytes) -> str:
    at, pictures = 13 + _colours(data, 10), 0
    while at < len(data):
        match data[at]:
            case 0x3B:
                return "" if pictures else _EMPTY
            case 0x21:
                at = _after_blocks(data, at + 2)
            case 0x2C:
                at, pictures = _after_blocks(data, at + 11 + _colours(data, at + 9)), pictures + 1
            case _:
                return "" if pictures else _DAMAGED
    return "" if pictures and at == len(data) else _CUT_OFF


def _colours(data: bytes, at: int) -> int:
    """Return the number of bytes of a table of colours, from the flags at a place."""
    flags = data[at] if at < len(data) else 0
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _after_blocks(data: bytes, at: int) -> int:
    """Return the place after the blocks that begin at a place; a place beyond the end where the blocks are cut off."""
    while at < len(data):
        if data[at] == 0:
            return at + 1
        at += 1 + data[at]
    return len(data) + 1


def _fault_of_webp(data: bytes) -> str:
    end, at, pixels = 8 + int.from_bytes(data[4:8], "little"), 12, False
    if end > len(data):
        return _CUT_OFF
    while at + 8 <= end:
        kind, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if at + 8 + length > end:
            return _DAMAGED
        at, pixels = at + 8 + length + length % 2, pixels or kind in (b"VP8 ", b"VP8L", b"ANMF")
    return "" if pixels else _EMPTY
