"""The waist: how much each face knows of the inside, and how often an act is written down. The numbers only fall.

A face is a room that people or programs see. It asks by verbs and reads by `reach`. Each other name of a room below,
each private attribute of a system and each transaction of its own ties the face to the inside: then a change of a table
is a change of the face, too. A number that has fallen is lowered here, and `python -m tests.project.test_waist` prints
the numbers of today.
"""

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.project.test_layers import code, imported, nodes

PACKAGE = Path(__file__).parents[2] / "ikigai_actors"
INSIDE = ("actors", "agent", "providers", "records", "store", "system", "tools")
OWN = ("self", "cls")
INNER = ("system", "client", "agent", "access")
"""What those are called that lead to the inside."""
STORE = re.compile(r"(store|client|database)(\(\))?$")
OTHERS = re.compile(r"(os|ray|signal|process|stream)$")
"""Owners of other methods that are called ``fork``, ``kill``, ``signal`` or ``send``."""

TIED = re.compile(r"(?<!\bself)(?<!\bcls)\._[a-z]|\.(?:read|write)\(")
"""Text that may be such a tie. A file without it is not parsed."""


class Ties(NamedTuple):
    """The ties of a room to the inside."""

    names: int
    """Names that are not public, of modules of the inside."""
    private: int
    """Uses of a private attribute of something that is not the room's own."""
    stores: int
    """Those among them that take the store of a system."""
    transactions: int
    """Reads and writes of a store that the room makes itself."""


WAIST: Mapping[str, Ties] = {
    "behaviour": Ties(15, 0, 0, 0),
    "cluster": Ties(0, 0, 0, 0),
    "doors": Ties(3, 0, 0, 0),
    "guests": Ties(3, 0, 0, 0),
    "recordings": Ties(0, 0, 0, 0),
    "shell": Ties(14, 0, 0, 0),
    "sight": Ties(5, 0, 0, 0),
}

CALLED: Mapping[str, frozenset[str]] = {
    "fork": frozenset({"fork", "fork_many", "new_fork"}),
    "send": frozenset({"send", "Send"}),
    "kill": frozenset({"kill", "signal", "SendSignal"}),
    "budget": frozenset({"grant", "set_budget", "Grant", "SetBudget"}),
}
"""By which names of methods and units an act is asked for."""

PLACES: Mapping[str, int] = {"fork": 11, "send": 4, "kill": 4, "budget": 3}
"""In how many places the rooms above the kernel ask for an act."""


@cache
def public_names() -> frozenset[tuple[str, str]]:
    """The module and the name of each line of a stub."""
    lines = [line.split() for stub in PACKAGE.rglob("*.pyi") for line in stub.read_text("utf-8").splitlines()]
    return frozenset((words[1], words[3]) for words in lines if words[:1] == ["from"])


@cache
def defined_in(path: Path) -> frozenset[str]:
    """The private attributes that the classes of a file define: one instance may use those of another."""
    return frozenset(
        node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else node.attr
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) in OWN)
    ) | frozenset(
        name.id
        for room in nodes(path)
        if isinstance(room, ast.ClassDef)
        for node in room.body
        if isinstance(node, ast.Assign)
        for name in node.targets
        if isinstance(name, ast.Name)
    )


def is_own(base: ast.expr, attr: str, path: Path) -> bool:
    """Whether a private attribute of this is one of the file's own, or of a class above it."""
    text = ast.unparse(base)
    return (
        text in OWN
        or text in ("super()", "os")
        or (attr in defined_in(path) and not text.endswith(INNER))
        or (text.startswith("self._") and not text.endswith(INNER))
    )


def is_private(name: str) -> bool:
    """Whether a name is private; those of named tuples are not, though they look so."""
    return name[:1] == "_" and name[:2] != "__" and name not in ("_asdict", "_fields", "_make", "_replace")


def is_transaction(call: ast.Call) -> bool:
    """Whether a call reads or writes a store: its own, or that of a client, which hands a transaction out."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("read", "write"):
        return False
    arguments = call.args[:1]
    return (
        bool(arguments and isinstance(arguments[0], ast.Lambda))
        or STORE.search(ast.unparse(call.func.value)) is not None
    )


def ties(room: str) -> Ties:
    """The ties of a room today."""
    names: set[tuple[str, str]] = set()
    private = stores = transactions = 0
    files = [*(PACKAGE / room).rglob("*.py")]
    for module, name, _ in (line for file in files for line in imported(file) if line.name):
        if f"{module}.".split(".")[1] in INSIDE:
            names.add((module, str(name)))
    tied = [file for file in files if TIED.search(code(file))]
    for path, node in ((file, node) for file in tied for node in nodes(file)):
        match node:
            case ast.Attribute(value=base, attr=attr) if is_private(attr) and not is_own(base, attr, path):
                private += 1
                stores += attr == "_store"
            case ast.Call() if is_transaction(node):
                transactions += 1
    return Ties(len(names - public_names()), private, stores, transactions)


def places(act: str) -> list[str]:
    """The places that ask for an act, as file and line."""
    return [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for room in (*WAIST, "verbs", "reach")
        for path in sorted((PACKAGE / room).rglob("*.py"))
        if re.search(rf"\b(?:{'|'.join(CALLED[act])})\(", code(path))
        for node in nodes(path)
        if isinstance(node, ast.Call) and asks_for(node, CALLED[act])
    ]


def asks_for(call: ast.Call, names: frozenset[str]) -> bool:
    """Whether a call is one of a method, or makes a unit, of one of these names."""
    match call.func:
        case ast.Attribute(attr="send") if len(call.args) < 2:  # a mail has a recipient and a text
            return False
        case ast.Attribute(value=base, attr=attr):
            return attr in names and OTHERS.search(ast.unparse(base)) is None
        case ast.Name(id=name):
            return name in names
    return False


@pytest.mark.parametrize("room", WAIST)
def test_a_face_is_tied_to_the_inside_by_no_more_than_it_was(room: str) -> None:
    today, most = ties(room), WAIST[room]
    assert all(now <= then for now, then in zip(today, most, strict=True)), (today, most)


@pytest.mark.parametrize("act", PLACES)
def test_an_act_is_asked_for_in_no_more_places_than_it_was(act: str) -> None:
    lines = places(act)
    assert 0 < len(lines) <= PLACES[act], lines


if __name__ == "__main__":
    for room in WAIST:
        print(f'    "{room}": Ties({", ".join(map(str, ties(room)))}),')
    print({act: len(places(act)) for act in PLACES})
