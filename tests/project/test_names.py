"""One name, one thing: no two modules define the same public name; and no function has a name that says nothing."""

import re
from collections import defaultdict
from pathlib import Path

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
    return {one or other for one, other in _PUBLIC.findall(path.read_text(encoding="utf-8"))}


SAID = {"told", "look", "take", "end"}
"""Words that say neither what is done nor with what: no function has one of these for its name."""


PUBLISHED = {"ikigai_actors/behaviour/results.py": {"end"}}
"""Words of these that outside programs use, by the module that defines them."""


ASKED_FOR = {"Program", "gather", "program", "step"}
"""Names of `ikigai_actors.programs`: in a program they are the plain words, whatever they are elsewhere."""


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
    found = {path.relative_to(ROOT).as_posix(): SAID.intersection(functions(path)) for path in modules()}
    assert {path: names for path, names in found.items() if names - PUBLISHED.get(path, set())} == {}
