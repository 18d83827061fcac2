"""Every public name of the runtime says what it is for, itself or by what it inherits."""

import ast
import builtins
import importlib
import inspect
import keyword
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.kit.zygote import guests_missing
from tests.project.test_layers import FILES, ROOT, module_of, parsed

SUPERVISORS = {module_of(path): path for path in sorted((ROOT / "supervisors").rglob("*.py"))}
MODULES = {
    name: path
    for name, path in {**FILES, **SUPERVISORS}.items()
    if not name.endswith("__main__") and path.read_text(encoding="utf-8").strip() and name not in guests_missing()
}


def members(name: str) -> Iterator[tuple[str, object, bool]]:
    """The public classes, functions and methods that a module defines: path, object, whether it is a method."""
    module = importlib.import_module(name)
    for key, value in vars(module).items():
        if key.startswith("_") or getattr(value, "__module__", None) != name:
            continue
        if inspect.isclass(value):
            yield f"{name}.{key}", value, False
            for method, member in vars(value).items():
                if not method.startswith("_") and (inspect.isroutine(member) or isinstance(member, property)):
                    yield f"{name}.{key}.{method}", getattr(value, method), True
        elif inspect.isfunction(value):
            yield f"{name}.{key}", value, False


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement below a node, without a look at what is in expressions, which is nearly all."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, field, ()):
            if isinstance(node, ast.stmt):
                yield node
            yield from statements(node)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every docstring of a module, of attributes too, with its line."""
    for node in statements(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


@cache
def every_docstring() -> tuple[tuple[Path, int, str], ...]:
    """Every docstring of the modules, with its file and its line."""
    return tuple((path, *docstring) for path in MODULES.values() for docstring in docstrings(parsed(path)))


def test_every_public_name_has_a_docstring_or_inherits_one() -> None:
    def said(value: object, is_method: bool) -> str | None:
        return inspect.getdoc(value) if is_method else getattr(value, "__doc__", None)

    every = (member for name in MODULES for member in members(name))
    assert [path for path, value, is_method in every if not said(value, is_method)] == []


OTHERS = ("asyncio", "pykka", "queue", "ray")
"""Libraries whose names docstrings may have."""


def set_by(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement sets."""
    match statement:
        case ast.Assign(targets=targets):
            yield from (
                part for inner in targets for part in (inner.elts if isinstance(inner, ast.Tuple) else (inner,))
            )
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            yield target


def defined(body: list[ast.stmt]) -> Iterator[str]:
    """The names that statements define: of classes, functions and their arguments, attributes, constants, imports."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                arguments = node.args
                yield from (
                    node.name,
                    *(argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)),
                )
                every = (target for statement in statements(node) for target in set_by(statement))
                yield from (target.attr for target in every if isinstance(target, ast.Attribute))
            case ast.ClassDef():
                yield from (node.name, *defined(node.body))
            case ast.Assign() | ast.AnnAssign():
                yield from (target.id for target in set_by(node) if isinstance(target, ast.Name))
            case ast.Import() | ast.ImportFrom():
                yield from ((alias.asname or alias.name).split(".")[-1] for alias in node.names)
            case ast.If():
                yield from defined(node.body)


@pytest.mark.slow("takes two seconds")
def test_a_name_that_a_docstring_has_in_backticks_is_there() -> None:
    known = {*dir(builtins), *keyword.kwlist}
    every: list[tuple[str, int, str]] = []
    for path in MODULES.values():
        tree = parsed(path)
        known.update(path.relative_to(ROOT).with_suffix("").parts, defined(tree.body))
        every += ((str(path), *docstring) for docstring in docstrings(tree))
    named = [
        (path, line, name)
        for path, line, text in every
        for name in re.findall(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(.*?\))?`(?!`)", text)
        if not name.startswith(OTHERS)
    ]
    assert [mention for mention in named if not known.issuperset(mention[2].split("."))] == []


def test_no_docstring_only_points_at_another() -> None:
    points = re.compile(r'^\s*[rf]?"""See `', re.MULTILINE)
    assert points.search('def f():\n    """See `g`."""') is not None
    assert [path for path in MODULES.values() if points.search(path.read_text(encoding="utf-8"))] == []


def test_no_docstring_begins_with_a_word_that_names_nothing() -> None:
    """A reader who has only this sentence must know what it is about."""
    begins = re.compile(r"(?:What|Its|Those|None|These|They|It|Their|That)\b")
    assert [
        (str(path), line, text.partition("\n")[0]) for path, line, text in every_docstring() if begins.match(text)
    ] == []


def documented(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The names below "Args:" in the docstring of a function."""
    section = re.search(r"^Args:\n((?: {4}.*\n?|\n)*)", ast.get_docstring(function) or "", re.MULTILINE)
    for names in re.findall(r"^ {4}(\S.*?):(?:\s|$)", section[1] if section else "", re.MULTILINE):
        yield from names.split(", ")


def test_the_arguments_in_a_docstring_are_those_of_its_function() -> None:
    for path in MODULES.values():
        for node in statements(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.kwarg is None:
                every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg)
                missing = {name.lstrip("*") for name in documented(node)} - {each.arg for each in every if each}
                assert (path, node.name, missing) == (path, node.name, set())


RIDDLES = {
    r"\b[Ww]hat (?:it|they) ": 29,
    r"\bof (?:its|their) own\b": 69,
    r"\bthe ones? (?:that|of|which)\b": 17,
    r"\b(?:is|are) told\b|\bhears?\b": 10,
    r"\A(?:How|When|Where|Why) ": 52,
    r"\AWhether it ": 11,
    r"\A(?:Make it|Put the parts together)[.,;:]": 0,
}
"""Words by which a docstring says less than its reader needs, and how many docstrings may still have them: lower it."""


@pytest.mark.parametrize("words", RIDDLES)
def test_docstrings_that_name_no_noun_become_fewer(words: str) -> None:
    """Name the thing: not "what it has" but "the rows of the agent"."""
    riddles = [
        f"{path}:{line}: {text.partition(chr(10))[0]}"
        for path, line, text in every_docstring()
        if re.search(words, text)
    ]
    assert len(riddles) <= RIDDLES[words], riddles
