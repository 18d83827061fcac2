"""The table of kinds: it alone says what is true of a kind."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors.records.messages import messages
from ikigai_actors.records.messages.messages import Kind, Trait
from ikigai_actors.store.queries import queries

ROOT = Path(__file__).parents[2]
MODULES = [path for folder in ("ikigai_actors", "supervisors") for path in sorted((ROOT / folder).rglob("*.py"))]

SETS = {
    Trait.CONTROL: messages.CONTROL,
    Trait.CONVERSATION: messages.CONVERSATION,
    Trait.OPENING: messages.OPENINGS,
    Trait.IN_TURN: messages.IN_TURN,
    Trait.ENDING: messages.ENDINGS,
    Trait.SPENDING: messages.SPENDING,
}


@pytest.mark.parametrize("trait", Trait)
def test_the_set_of_a_trait_has_the_kinds_whose_rows_name_it(trait: Trait) -> None:
    assert SETS[trait] == {kind for kind in Kind if trait in kind.traits} != set()


def test_a_kind_ends_a_turn_only_within_one() -> None:
    assert messages.ENDINGS <= messages.IN_TURN


def kinds_in(node: ast.AST) -> set[str]:
    """The kinds that a list, set, tuple or dict names, as members of `Kind` or all by their words; else none."""
    match node:
        case ast.Set(elts=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            pass
        case ast.Dict(keys=keys):
            parts = [key for key in keys if key is not None]
        case _:
            return set()
    members = {Kind[part.attr].value for part in parts if isinstance(part, ast.Attribute) and is_kind(part)}
    words = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return members or (words if len(words) == len(parts) and words <= {*Kind} else set())


def is_kind(part: ast.Attribute) -> bool:
    return isinstance(part.value, ast.Name) and part.value.id == "Kind"


def lists_of_kinds(source: str) -> Iterator[tuple[int, set[str]]]:
    """The line and the kinds of each list of several kinds that says a trait: a constant, or the kinds of a trait."""
    tree = ast.parse(source)
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    constants = {
        part
        for body in bodies
        for statement in body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for part in ast.walk(statement)
    }
    for node in ast.walk(tree):
        kinds = kinds_in(node)
        if len(kinds) > 1 and (node in constants or kinds in SETS.values()):
            yield node.lineno, kinds  # type: ignore[attr-defined]  # it is an expression


@pytest.mark.parametrize(
    "source",
    [
        "OPENERS = (Kind.USER, Kind.TOOL_RESULT)",
        "_ENDS: Final = frozenset({Kind.USER, Kind.RETRY})",
        'class Judge:\n    forms = {"assistant": reply, "mail": mail}',
        "def ended(kind):\n    return kind in (Kind.ERROR, Kind.INTERRUPTED, Kind.ASSISTANT, Kind.OUTPUT)",
    ],
)
def test_a_list_of_kinds_is_found_as_a_constant_or_where_it_is_that_of_a_trait(source: str) -> None:
    assert len(list(lists_of_kinds(source))) == 1


@pytest.mark.thorough("a walk through every module; the types of kinds hold the rest")
@pytest.mark.slow("takes half a second")
def test_no_other_module_lists_kinds_by_trait() -> None:
    table = Path(messages.__file__)
    others = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in MODULES if path != table}
    named = "\\bKind\\.[A-Z]|" + "|".join(f'"{kind.value}"' for kind in Kind)
    near = re.compile(f"(?s)(?:{named}).{{1,400}}?(?:{named})")  # to parse the others, too, takes twice as long
    others = {name: source for name, source in others.items() if near.search(source)}
    assert {name: lists for name, source in others.items() if (lists := list(lists_of_kinds(source)))} == {}


def test_a_statement_lists_kinds_only_as_the_index_of_those_that_change_a_view() -> None:
    lists = [(name, re.findall(r"\bkind\s+IN\s*\(([^)]*)\)", sql, re.IGNORECASE)) for name, sql in queries().items()]
    words = [(name, set(re.findall(r"'(\w+)'", text))) for name, texts in lists for text in texts]
    assert {frozenset(listed) for _, listed in words if listed <= {*Kind}} == {messages.CONTROL}
