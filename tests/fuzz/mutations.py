"""Values in which something, anywhere, is replaced, left out, doubled or moved."""

from typing import Any

from hypothesis import strategies as st

from tests.fuzz.hostile import values

Path = tuple[Any, ...]


def _paths(value: Any, path: Path = ()) -> list[Path]:
    """Where the parts of a value are, itself too."""
    paths = [path]
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        paths += _paths(child, (*path, key))
    return paths


def _replaced(value: Any, path: Path, part: Any) -> Any:
    if not path:
        return part
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = _replaced(copy[key], tuple(rest), part)
    return copy


def _without(value: Any, path: Path) -> Any:
    *above, key = path
    parent = value
    for step in above:
        parent = parent[step]
    copy = dict(parent) if isinstance(parent, dict) else list(parent)
    del copy[key]
    return _replaced(value, tuple(above), copy)


@st.composite
def mutated(draw: st.DrawFn, value: Any, most: int = 3) -> Any:
    """A value like this one, with up to so many parts that are not as they were."""
    for _ in range(draw(st.integers(0, most))):
        paths = _paths(value)
        path = paths[draw(st.integers(0, len(paths) - 1))]
        leave_out = path and draw(st.integers(0, 3)) == 0
        value = _without(value, path) if leave_out else _replaced(value, path, draw(values))
    return value


@st.composite
def shuffled(draw: st.DrawFn, items: list[Any]) -> list[Any]:
    """A list like this one, with items left out, doubled or moved."""
    items = list(items)
    for _ in range(draw(st.integers(0, 3))):
        if not items:
            break
        at, to = draw(st.integers(0, len(items) - 1)), draw(st.integers(0, len(items) - 1))
        match draw(st.sampled_from(["drop", "double", "move", "end"])):
            case "drop":
                del items[at]
            case "double":
                items.insert(to, items[at])
            case "move":
                items.insert(to, items.pop(at))
            case "end":
                del items[at:]
    return items
