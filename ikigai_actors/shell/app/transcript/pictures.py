"""Pictures as rows of coloured cells, which every terminal with colours can show.

Pure, except for the function that reads the bytes.

A cell shows two pixels, one above the other: "▀" in the colour of the upper one, on the colour of the lower one.
Pillow, from the extra [pictures], decodes pictures. Without Pillow, and for damaged pictures, there are no rows. These
functions may be slow, so call them on a thread.
"""

import io
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import groupby

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ikigai_actors.attachments import MOST_PIXELS, size_of

MOST_COLUMNS, MOST_ROWS = 60, 16
"""The most cells that a picture takes."""

_KEPT = 50
"""The most pictures whose rows are cached: up to 600 KB each."""

_FIRST_SIZE = 16 * MOST_COLUMNS
"""The side length in pixels to which the decoder reduces a picture first, the cheapest way that its format has."""

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")

Pixel = tuple[int, int, int]
"""Red, green and blue, each up to 255."""

Cell = tuple[Pixel | None, Pixel | None]
"""The upper and the lower pixel of a cell; None shows the screen through the picture."""

PictureRows = Callable[[str, int], Sequence[Strip]]
"""Returns the rows of a picture, by its hash and the largest number of columns; empty if it cannot be shown."""


def picture_rows(read: Callable[[str], bytes | None]) -> PictureRows:
    """Return a function that returns the rows of pictures, and caches recent ones.

    Args:
        read: returns the bytes of a picture by its hash, on any thread; its errors are not cached.
    """

    @lru_cache(_KEPT)
    def rows(sha256: str, columns: int) -> Sequence[Strip]:
        data = read(sha256) if find_spec("PIL") is not None else None
        return tuple(map(_strip, cells_of(data, columns))) if data is not None else ()

    return rows


def cells_of(data: bytes, columns: int = MOST_COLUMNS) -> list[list[Cell]]:
    """Return a picture as rows of cells, not enlarged; empty if it cannot be shown.

    Args:
        data: the bytes of a PNG, JPEG, GIF or WebP picture. More than 8,000 pixels along a side are not decoded.
        columns: the most cells of a row; 60 at most.
    """
    if not 0 < max(size_of(data) or (0, 0)) <= MOST_PIXELS:  # before Pillow, which warns of large ones on stderr
        return []
    try:
        width, height, pixels = _decoded(data, min(columns, MOST_COLUMNS))
    except Exception:  # Pillow is missing, or the bytes are damaged: its decoders raise errors of many types
        return []
    seen = [(red, green, blue) if alpha >= 128 else None for red, green, blue, alpha in pixels]
    lines = [seen[at : at + width] for at in range(0, width * height, width)]
    if height % 2:
        lines.append([None] * width)
    return [list(zip(upper, lower, strict=True)) for upper, lower in zip(lines[::2], lines[1::2], strict=True)]


def _decoded(data: bytes, columns: int) -> tuple[int, int, list[tuple[int, int, int, int]]]:
    """Return the width, height and pixels of a picture, after reducing it to the number of cells."""
    from PIL import Image, ImageOps

    with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
        if max(image.size) > MOST_PIXELS:
            raise ValueError(f"{image.size} pixels")
        image.thumbnail((_FIRST_SIZE, _FIRST_SIZE))
        small = ImageOps.exif_transpose(image).convert("RGBA")  # a camera's picture may lie on its side
    small.thumbnail((columns, 2 * MOST_ROWS))
    values = iter(small.tobytes())
    return *small.size, list(zip(values, values, values, values, strict=True))


def _strip(row: Sequence[Cell]) -> Strip:
    return Strip([_segment(cell, len(list(same))) for cell, same in groupby(row)])


def _segment(cell: Cell, count: int) -> Segment:
    upper, lower = (None if pixel is None else Color.from_rgb(*pixel) for pixel in cell)
    if upper is None:
        return Segment("▄" * count, Style(color=lower)) if lower is not None else Segment(" " * count)
    return Segment("▀" * count, Style(color=upper, bgcolor=lower))
