"""Every public name of the runtime says what it is for, itself or by what it inherits."""

import ast
import builtins
import importlib
import inspect
import keyword
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

from tests.kit.zygote import guests_missing
from tests.project.test_layers import FILES, ROOT, STRING, code, imported, module_of, source

SUPERVISORS = {module_of(path): path for path in sorted((ROOT / "supervisors").rglob("*.py"))}
MODULES = {
    name: path
    for name, path in {**FILES, **SUPERVISORS}.items()
    if not name.endswith("__main__") and source(path).strip() and name not in guests_missing()
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


STRING_OF_LINE = re.compile(rf"^[ \t]*r?(?=\"{{3}})({STRING})|{STRING}|#[^\n]*", re.DOTALL | re.MULTILINE)
"""A string in three quotes at the start of a line, in the group; or another string, or a comment."""


class Docstring(NamedTuple):
    """A docstring, of an attribute too, and where it is."""

    path: Path
    start: int
    """Of its line, in the text of the file."""
    line: int
    text: str


def docstrings(path: Path) -> Iterator[Docstring]:
    """Every docstring of a module: such strings are nothing else in our code."""
    text, line, counted = source(path), 1, 0
    for string in STRING_OF_LINE.finditer(text):
        if string[1]:
            line, counted = line + text.count("\n", counted, string.start()), string.start()
            value = ast.literal_eval(string[0].strip()) if "\\" in string[1] else string[1][3:-3]
            yield Docstring(path, counted, line, value)


DOCSTRINGS = [docstring for path in MODULES.values() for docstring in docstrings(path)]
"""Of all modules, read before the processes that run tests are forked."""


def test_every_public_name_has_a_docstring_or_inherits_one() -> None:
    def said(value: object, is_method: bool) -> str | None:
        return inspect.getdoc(value) if is_method else getattr(value, "__doc__", None)

    every = (member for name in MODULES for member in members(name))
    assert [path for path, value, is_method in every if not said(value, is_method)] == []


OTHERS = ("asyncio", "pykka", "queue", "ray")
"""Libraries whose names docstrings may have."""


PARAMETERS = re.compile(r"\bdef \w+\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")

DEFINED = re.compile(r"\b(?:def|class) (\w+)|\.(\w+)(?=: |(?:, [\w.]+)* [-+|&*/]*= )")
"""A class, a function, or an attribute that a function sets."""

FIELDS = re.compile(r"^(?: {4})?(\w+(?:(?:, | = )\w+)*)(?::| =) ", re.MULTILINE)
"""Names at the top of a module or of a class."""

BLOCK = re.compile(r"^(?=(?:async def|def|class)\b)", re.MULTILINE)


def defined(path: Path) -> Iterator[str]:
    """The names that a file defines: of classes, functions and their arguments, attributes, constants, imports."""
    text = code(path)
    yield from (alias.split(".")[-1] for _, _, alias in imported(path))
    yield from (name for pair in DEFINED.findall(text) for name in pair)
    for parameters in PARAMETERS.findall(text):
        yield from re.findall(r"\w+", parameters)  # their types too, which are imported
    for block in BLOCK.split(text):
        yield from (name for names in FIELDS.findall(block) for name in re.findall(r"\w+", names))


def test_a_name_that_a_docstring_has_in_backticks_is_there() -> None:
    known = {*dir(builtins), *keyword.kwlist}
    for path in MODULES.values():
        known.update(path.relative_to(ROOT).with_suffix("").parts, defined(path))
    named = [
        (str(path), line, name)
        for path, _, line, text in DOCSTRINGS
        for name in re.findall(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(.*?\))?`(?!`)", text)
        if not name.startswith(OTHERS)
    ]
    assert [mention for mention in named if not known.issuperset(mention[2].split("."))] == []


def test_no_docstring_only_points_at_another() -> None:
    points = re.compile(r'^\s*[rf]?"""See `', re.MULTILINE)
    assert points.search('def f():\n    """See `g`."""') is not None
    assert [path for path in MODULES.values() if points.search(source(path))] == []


def test_no_docstring_begins_with_a_word_that_names_nothing() -> None:
    """A reader who has only this sentence must know what it is about."""
    begins = re.compile(r"(?:What|Its|Those|None|These|They|It|Their|That)\b")
    assert [
        (str(path), line, text.partition("\n")[0]) for path, _, line, text in DOCSTRINGS if begins.match(text)
    ] == []


def documented(text: str) -> Iterator[str]:
    """The names below "Args:" in the docstring of a function."""
    section = re.search(r"^Args:\n((?: {4}.*\n?|\n)*)", inspect.cleandoc(text), re.MULTILINE)
    for names in re.findall(r"^ {4}(\S.*?):(?:\s|$)", section[1] if section else "", re.MULTILINE):
        yield from names.split(", ")


HEAD = re.compile(r"^[ \t]*(?:async )?def \w+\(", re.MULTILINE)


def arguments_before(path: Path, end: int) -> ast.arguments | None:
    """The arguments of the function whose head ends at a place of a file; None without one."""
    text = source(path)[:end]
    *_, start = (0, *(head.start() for head in HEAD.finditer(text)))
    with suppress(SyntaxError):
        match ast.parse(f"{dedent(text[start:])}    ...").body:
            case [ast.FunctionDef(args=arguments, body=[_]) | ast.AsyncFunctionDef(args=arguments, body=[_])]:
                return arguments
    return None


def test_the_arguments_in_a_docstring_are_those_of_its_function() -> None:
    functions = 0
    for path, start, line, text in DOCSTRINGS:
        if "Args:\n" in text and (taken := arguments_before(path, start)):
            functions += 1
            every = (*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg)
            missing = {name.lstrip("*") for name in documented(text)} - {each.arg for each in every if each}
            assert taken.kwarg or (path, line, missing) == (path, line, set())
    assert functions > 300


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
        f"{path}:{line}: {text.partition(chr(10))[0]}" for path, _, line, text in DOCSTRINGS if re.search(words, text)
    ]
    assert len(riddles) <= RIDDLES[words], riddles
