"""One name, one thing: no two modules define the same public name; and no function has a name that says nothing."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.test_layers import parsed, walked

ROOT = Path(__file__).parents[2]
TREES = ("ikigai_actors", "supervisors")

FAMILIES = (
    (
        "ikigai_actors/shell/cli/",
        "ikigai_actors/verbs/",
        "ikigai_actors/behaviour/verbs.py",
        "ikigai_actors/shell/slash.py",
        "ikigai_actors/shell/walking.py",
        "ikigai_actors/shell/front_end.py",
    ),
    ("ikigai_actors/agent/builtin_calls/",),
    ("ikigai_actors/providers/anthropic_errors.py", "ikigai_actors/providers/openai_errors.py"),
)
"""Files that define the same thing each: a command, the table of built-in calls, what a service says of errors."""


_PUBLIC = re.compile(
    r"^(?:(?:async )?def |class )([a-zA-Z]\w*)|^([a-zA-Z]\w*)(?:: [^=\n]+)? = (?!TypeVar\(|logging\.getLogger)",
    re.MULTILINE,
)
_FUNCTION = re.compile(r"^(?:    )?(?:async )?def (\w+)", re.MULTILINE)


def public_names(path: Path) -> set[str]:
    """The public names that a module defines at its top, without loggers and type variables."""
    return {function or other for function, other in _PUBLIC.findall(path.read_text(encoding="utf-8"))}


SAID = {"told", "look", "take", "end"}
"""Words that say neither what is done nor with what: no function has one of these for its name."""


PUBLISHED = {"ikigai_actors/behaviour/results.py": {"end"}}
"""Words of these that outside programs use, by the module that defines them."""


ASKED_FOR = {"Program", "gather", "program", "step"}
"""Names of `ikigai_actors.programs`: in a program they are the plain words, whatever they are elsewhere."""


NO_NOUNS = {"found", "given", "one", "told"}
"""Participles and pronouns: a value has the noun of what it is for its name."""


WORD = rf"\b(?:{'|'.join(sorted(NO_NOUNS))})\b"

BOUND = re.compile(
    rf"\bas {WORD}|{WORD}(?<!@given)(?<!hypothesis import given)\s*(?:[(:,)\]}}|]|\S{{0,3}}=|in\b|if\b|for\b)"
)
"""Where one of these may be bound, in code alone, and is not Hypothesis's: only a file that has this is parsed."""


NO_CODE = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|#[^\n]*', re.DOTALL)
"""Strings and comments: they hold most of these words."""


KEYS = {"ikigai_actors/verbs/finding.py": {"found"}}
"""Names of these that are keys of JSON which programs of others read, by the module that defines them."""


def modules() -> list[Path]:
    return [path for tree in TREES for path in sorted((ROOT / tree).rglob("*.py"))]


def functions(path: Path) -> set[str]:
    """The functions of a module, and the methods of its classes."""
    return {*_FUNCTION.findall(path.read_text(encoding="utf-8"))}


def are_a_family(modules: list[str]) -> bool:
    return any(all(module.startswith(folders) for module in modules) for folders in FAMILIES)


def test_no_two_modules_define_the_same_public_name() -> None:
    homes = defaultdict(list)
    for path in modules():
        if path.name.startswith("_") and path.name != "__init__.py":
            continue
        for name in public_names(path):
            homes[name].append(path.relative_to(ROOT).as_posix())
    twice = {name: modules for name, modules in homes.items() if len(modules) > 1 and not are_a_family(modules)}
    assert twice.keys() <= ASKED_FOR


def test_no_function_is_named_by_a_word_that_says_nothing() -> None:
    vague = {path.relative_to(ROOT).as_posix(): SAID.intersection(functions(path)) for path in modules()}
    assert {path: names for path, names in vague.items() if names - PUBLISHED.get(path, set())} == {}


def may_bind(source: str) -> bool:
    """Whether code may bind one of these names; to parse it takes twenty times as long as to look."""
    return BOUND.search(NO_CODE.sub("", source)) is not None


def bindings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of each binding of a module: variables, arguments, functions, classes, aliases."""
    for node in walked(tree):
        match node:
            case ast.Name(id=str(name), ctx=ast.Store()) | ast.arg(arg=str(name)):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.MatchMapping(rest=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):  # another name is that of what is imported, as Hypothesis's `given`
                yield node.lineno, name


@pytest.mark.parametrize("tree", ["benchmarks", "examples", "ikigai_actors", "supervisors", "tests"])
def test_no_value_is_named_by_a_participle_or_a_pronoun(tree: str) -> None:
    paths = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / tree).rglob("*.py"))}
    assert [
        f"{module}:{line} {name}"
        for module, path in paths.items()
        if may_bind(path.read_text(encoding="utf-8"))
        for line, name in bindings(parsed(path))
        if name in NO_NOUNS - KEYS.get(module, set())
    ] == []


def test_each_kind_of_binding_is_seen() -> None:
    source = (
        "import a as told\nfrom a import b as one\ndef found(given, *told, one=1):\n    found: int = 0\n"
        "class told: ...\ntry: ...\nexcept OSError as found: ...\nfor one, given in (): ...\n"
        "[told for told in (found := one.told)]\nlambda given: told(one=given)\n"
        "match 1:\n    case [found, *one]: ...\n    case {**told} as given: ...\n"
    )
    lines = sorted(line for line, name in bindings(ast.parse(source)) if name in NO_NOUNS)
    assert lines == [1, 2, 3, 3, 3, 3, 4, 5, 7, 8, 8, 9, 9, 10, 12, 12, 13, 13]
    assert {source.count("\n", 0, bound.start()) + 1 for bound in BOUND.finditer(source)} >= {*lines}
