"""Draw the floors of the code: ``python -m tests.kit.architecture`` writes docs/engineering/architecture.svg.

A room is a box, with the sentence that the package's docstring has for it. An arrow leads from a room to a room below
that it imports; an arrow that follows from two others is left out. The words that all rooms use are one box.
"""

import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from textwrap import wrap

import ikigai_actors
from tests.project.test_layers import FILES, ROOMS, RUNTIME, imports, room

PICTURE = Path(__file__).parents[2] / "docs" / "engineering" / "architecture.svg"

ROOM, HEIGHT, GAP, MARGIN = 262, 62, 40, 16
WORDS, PURE = "words", "supervisors"
NAMES = (*(name for rooms in ROOMS[:-1] for name in sorted(rooms)), WORDS, PURE)
SAID = {WORDS: "errors, checks of arguments, texts", PURE: "life and death, pure: signals, orphans, restarts"}
STYLE = """
  text { font-family: system-ui, sans-serif; fill: #1f2328 }
  .name { font-size: 15px; font-weight: 600 }
  .said { font-size: 11px; fill: #59636e }
  .room { fill: #f6f8fa; stroke: #818b98 }
  .arrow { stroke: #0969da; fill: none; opacity: .75 }
"""


def rooms_below() -> Mapping[str, set[str]]:
    """The rooms that each room imports."""
    below: dict[str, set[str]] = {name: set() for name in NAMES}
    for module in RUNTIME:
        for name in imports(FILES[module]):
            package, *rest = name.split(".")
            known = PURE if package == PURE else rest[0] if package == ikigai_actors.__name__ and rest else None
            if known is not None:
                below[_box(room(module))].add(_box(known))
    return {name: rooms - {name} for name, rooms in below.items()}


def floors(below: Mapping[str, set[str]]) -> list[list[str]]:
    """The rooms, the lowest floor first: each stands one floor above the highest room that it imports."""
    floor: dict[str, int] = {}
    for name in reversed(NAMES):  # NAMES has each room above those that it may import
        floor[name] = 1 + max((floor[room] for room in below[name]), default=-1)
    return [[name for name in NAMES if floor[name] == number] for number in range(max(floor.values()) + 1)]


def direct(below: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that do not follow from two others."""
    reached: dict[str, set[str]] = {}
    for name in reversed(NAMES):
        reached[name] = below[name].union(*(reached[room] for room in below[name]))
    return {name: rooms - set().union(*(reached[room] for room in rooms)) for name, rooms in below.items()}


def _box(name: str) -> str:
    return name if name in NAMES else WORDS


def sentences() -> dict[str, str]:
    """What the package's docstring says of each room."""
    said = dict(SAID)
    for line in (ikigai_actors.__doc__ or "").splitlines():
        names, *sentence = re.split(r"\s{3,}", line.strip())
        shared = sentence[0].split("; ") if sentence else []
        for place, name in enumerate(names.split(", ")):
            if sentence and name in NAMES:
                said.setdefault(name, shared[place] if "," in names else sentence[0])
    return said


def drawing() -> str:
    """The picture, as SVG."""
    places: dict[str, tuple[float, float]] = {}
    below = rooms_below()
    rows = floors(below)[::-1]
    width = 2 * MARGIN + max(map(len, rows)) * (ROOM + GAP) - GAP
    for row, floor in enumerate(rows):
        left = (width - len(floor) * (ROOM + GAP) + GAP) / 2
        for column, name in enumerate(floor):
            places[name] = (left + column * (ROOM + GAP), MARGIN + row * (HEIGHT + GAP))
    height = 2 * MARGIN + len(rows) * (HEIGHT + GAP) - GAP
    parts = [*_arrows(direct(below), places), *_boxes(places)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="The rooms of the code, and which imports which">\n<style>{STYLE}</style>\n'
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="6" refY="3" orient="auto">'
        '<path d="M0,0 L6,3 L0,6 z" fill="#0969da"/></marker></defs>\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _arrows(arrows: Mapping[str, set[str]], places: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    for name, (x, y) in places.items():
        start, top = x + ROOM / 2, y + HEIGHT
        for end, bottom in sorted((places[below][0] + ROOM / 2, places[below][1] - 2) for below in arrows[name]):
            bend = f"C{start:.0f},{top + GAP / 2:.0f} {end:.0f},{bottom - GAP / 2:.0f} {end:.0f},{bottom:.0f}"
            yield f'<path class="arrow" marker-end="url(#tip)" d="M{start:.0f},{top:.0f} {bend}"/>'


def _boxes(places: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    said = sentences()
    for name, (x, y) in places.items():
        yield f'<rect class="room" x="{x:.0f}" y="{y:.0f}" width="{ROOM}" height="{HEIGHT}" rx="8"/>'
        yield f'<text class="name" x="{x + 12:.0f}" y="{y + 22:.0f}">{name}</text>'
        for line, text in enumerate(wrap(said[name], 44)):
            yield f'<text class="said" x="{x + 12:.0f}" y="{y + 39 + 14 * line:.0f}">{escape(text)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
    print(PICTURE)
