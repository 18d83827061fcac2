"""The maps of the code, in the package's docstring and in docs/code.md: they name what is there, and every room."""

import ast
import re
from pathlib import Path

import pytest

import ikigai_actors

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ikigai_actors"
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
WORDS = sorted(path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__"))
PAGE = (ROOT / "docs" / "code.md").read_text(encoding="utf-8")


def test_the_docstring_of_the_package_names_every_room_and_nothing_that_is_not_there() -> None:
    assert ikigai_actors.__doc__ is not None
    [rooms] = re.findall(r"bottom last:\n\n(.*)", ikigai_actors.__doc__, re.DOTALL)
    named = [name for line in rooms.splitlines() for name in re.findall(r"\w+", re.split(r"\s{3,}", line.strip())[0])]
    assert sorted(named) == sorted([*ROOMS, *WORDS])


BY_SUBJECT = {"records/fsck", "agent/builtin_calls", "shell", "shell/app", "shell/app/screens", "shell/app/transcript",
              "shell/app/widgets", "shell/cli", "shell/verbs", "shell/line", "shell/text", "testing"}  # fmt: skip
"""Packages of alike modules, each named after its subject: one file for each command, screen or part of fsck. That of
the kit is a manual."""

PACKAGES = sorted(
    path.parent.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("__init__.py")
    if path.parent != PACKAGE and path.parent.relative_to(PACKAGE).as_posix() not in BY_SUBJECT
)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_docstring_of_a_package_names_each_of_its_modules_when_there_are_several(package: str) -> None:
    folder = PACKAGE / package
    modules = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert len(modules) < 6 or modules - {*re.findall(r"\w+", said)} == set()


def test_the_page_names_every_room() -> None:
    assert [room for room in ROOMS if f"`{room}/" not in PAGE] == []


def test_every_file_that_the_page_names_is_there() -> None:
    named = re.findall(r"`([\w./-]+(?:/|\.py|\.sql))`", PAGE)
    within = [ROOT, PACKAGE, *(PACKAGE / room for room in ROOMS)]
    assert len(named) > 30
    assert [name for name in named if not any((place / name).exists() for place in within)] == []
