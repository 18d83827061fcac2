"""docs/reference/limits.md names every number of the product that refuses something, and says what it is."""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from ikigai_actors.text import binary_size
from tests.project.test_layers import FILES, PACKAGE, ROOT, code, imported, nodes, source

PAGE = ROOT / "docs/reference/limits.md"

NO_LIMITS = {
    "arguments.FARTHEST",  # what no clock reaches
    "attachments._MOST_MB",  # another spelling
    "checkpoint.CHECKPOINT_FORMAT",
    "format.FORMAT",
    "format.HASHED",
    "merging._SHOWN",
    "links._KEY_BYTES",  # the size of a key
    "migrations.FIRST",
    "migrations.MOST_CHECKED",
    "migrations._ATTEMPTS",
    "prices.MICRO",  # a unit
    "session._TWICE",  # a time between two keys
    "start.ENDED_BY_CTRL_C",  # exit statuses
    "state.UNKNOWN",
    "trials.LAST_STATUS",
}
"""Numbers beside a refusal that limit nobody."""

Number = int | float

OPERATORS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def value_of(node: ast.expr, known: Mapping[str, Number]) -> Number | None:
    """The number that an expression is; None for anything else."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            return known.get(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            pair = value_of(left, known), value_of(right, known)
            return None if pair[0] is None or pair[1] is None else OPERATORS[type(op)](pair[0], pair[1])
    return None


NUMBER = re.compile(r"^([A-Z_][A-Z_0-9]*)(?:: [^=\n]+)? = ([-\w ().*/+]+)$", re.MULTILINE)
"""A line that may give a name to a number, and its value; that is cheaper to parse than the module."""


@cache
def numbers_of(module: str) -> Mapping[str, Number]:
    """The numbers that a module names, by name."""
    known: dict[str, Number] = {}
    for other, name, alias in imported(FILES[module]):
        if name and name.isupper() and other in FILES and name in numbers_of(other):
            known[alias] = numbers_of(other)[name]
    numbers: dict[str, Number] = {}
    for name, value in NUMBER.findall(code(FILES[module])):
        with suppress(SyntaxError):
            if (number := value_of(ast.parse(value.strip(), mode="eval").body, known)) is not None:
                numbers[name] = known[name] = number
    return numbers


def called(module: str, name: str) -> str:
    """A number as the page names it: by its module, whichever room that is in."""
    return f"{module.rpartition('.')[2]}.{name}"


def known_in(module: str) -> dict[str, str]:
    """The numbers that a module can name, its own and those that it imports; those of a module by its alias."""
    known = {name: called(module, name) for name in numbers_of(module)}
    for other, name, alias in imported(FILES[module]):
        whole = f"{other}.{name}"
        if whole in FILES:
            known |= {f"{alias}.{number}": called(whole, number) for number in numbers_of(whole)}
        elif name and other in FILES and name in numbers_of(other):
            known[alias] = called(other, name)
    return known


def refusals(path: Path) -> Iterator[ast.AST]:
    """What decides on a refusal, and says it: errors, conditions that raise one, and what checks are given."""
    for node in nodes(path):
        match node:
            case ast.Raise(exc=ast.expr() as error):
                yield error
            case ast.If(body=body) if any(isinstance(statement, ast.Raise) for statement in body):
                yield node.test
            case ast.Call(func=ast.Name(id=name)) if name.startswith(("check_", "_check")):
                yield node


@cache
def likely(path: Path) -> str:
    """The lines of a file that may be of a refusal: without a number in them it is not parsed."""
    lines: list[str] = []
    ends = 0  # the column of the line whose statement, or whose head, still goes on
    for line in source(path).splitlines():
        text = line.lstrip()
        column = len(line) - len(text)
        goes_on = ends and (column >= ends or text.startswith(")"))
        if goes_on or text.startswith(("raise ", "if ", "elif ")) or "check_" in text:
            lines.append(text)
            ends = ends if goes_on else column + 1
            ends = 0 if text.endswith(":") else ends
        else:
            ends = 0
    return "\n".join(lines)


def may_refuse(name: str, path: Path) -> bool:
    """Whether a refusal of a file may have this name."""
    return re.search(rf"(?<![\w.]){re.escape(name)}\b", likely(path)) is not None


def found_in_the_product() -> set[str]:
    """The numbers that refuse something, as the page names them."""
    numbers: set[str] = set()
    for module in FILES:
        if module.startswith(f"{PACKAGE}.testing"):
            continue
        if known := {name: text for name, text in known_in(module).items() if may_refuse(name, FILES[module])}:
            said = " ".join(map(ast.unparse, refusals(FILES[module])))
            numbers |= {text for name, text in known.items() if re.search(rf"(?<![\w.]){re.escape(name)}\b", said)}
    return numbers - NO_LIMITS


def rows() -> dict[str, str]:
    """The numbers on the page, by the constant that its row ends with."""
    text = PAGE.read_text(encoding="utf-8")
    return {
        name: most for most, name in re.findall(r"^\| [^|]+ \| ([^|]+) \|.*\| `(\w+\.\w+)` \|$", text, re.MULTILINE)
    }


def spelled(value: Number) -> set[str]:
    """How the page may write a number."""
    forms = {f"{value:,}", f"{value:g}", f"{value // 86_400:,} days"}
    if isinstance(value, int):
        forms |= {binary_size(value), f"10^{len(str(value)) - 1}" if value > 10**9 else f"{value:,}"}
    return forms


@pytest.mark.slow("reads every module")
def test_every_number_that_refuses_something_is_on_the_page() -> None:
    assert sorted(found_in_the_product() - rows().keys()) == []


def test_the_page_has_the_numbers_of_the_product() -> None:
    named = {name.partition(".")[0] for name in rows()}
    modules = [module for module in FILES if module.rpartition(".")[2] in named]
    product = {called(module, name): number for module in modules for name, number in numbers_of(module).items()}
    wrong = {
        name: (most, product.get(name))
        for name, most in rows().items()
        if name not in product or most not in spelled(product[name])
    }
    assert wrong == {}
    assert len(rows()) > 50


@pytest.mark.slow("reads every module")
def test_no_check_is_given_a_number_without_a_name() -> None:
    unnamed = [
        f"{module}:{node.lineno}"
        for module in FILES
        if re.search(r"\bmost=\s*\d", code(FILES[module]))
        for node in nodes(FILES[module])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("check_")
        for keyword in node.keywords
        if keyword.arg == "most" and isinstance(keyword.value, ast.Constant)
    ]
    assert unnamed == []
