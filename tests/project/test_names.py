"""One name, one thing: no two modules define the same public name; and no function has a name that says nothing."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TREES = ("ikigai_actors", "supervisors")

FAMILIES = (
    ("ikigai_actors/shell/cli/", "ikigai_actors/shell/commands/"),
    ("ikigai_actors/agent/builtin_calls/",),
)
"""Folders whose files define the same thing each: a command, and the table of built-in calls."""


def public_names(path: Path) -> Iterator[str]:
    """The public names that a module defines at its top, without loggers and type variables."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar") | ast.Attribute(attr="getLogger"))):
                continue
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name]
            case _:
                continue
        yield from (name for name in names if not name.startswith("_"))


SAID = {"told", "look", "take", "end"}
"""Words that say neither what is done nor with what: no function has one of these for its name."""


def modules() -> list[Path]:
    return [path for tree in TREES for path in sorted((ROOT / tree).rglob("*.py"))]


def functions(path: Path) -> Iterator[str]:
    """The functions of a module, and the methods of its classes."""
    nodes = list(ast.parse(path.read_text(encoding="utf-8")).body)
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            nodes += node.body
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def are_a_family(modules: list[str]) -> bool:
    return any(all(module.startswith(folders) for module in modules) for folders in FAMILIES)


@pytest.mark.slow("takes half a second")
def test_no_two_modules_define_the_same_public_name() -> None:
    homes = defaultdict(list)
    for path in modules():
        if path.name.startswith("_") and path.name != "__init__.py":
            continue
        for name in set(public_names(path)):
            homes[name].append(path.relative_to(ROOT).as_posix())
    twice = {name: modules for name, modules in homes.items() if len(modules) > 1 and not are_a_family(modules)}
    assert twice == {}


@pytest.mark.slow("takes half a second")
def test_no_function_is_named_by_a_word_that_says_nothing() -> None:
    found = {path.relative_to(ROOT).as_posix(): SAID.intersection(functions(path)) for path in modules()}
    assert {path: names for path, names in found.items() if names} == {}
