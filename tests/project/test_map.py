"""The maps of the code: they name what is there, and every room."""

import ast
import re
from pathlib import Path

import pytest

import ikigai_actors
from tests.kit.architecture import PICTURE, drawing

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ikigai_actors"
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
WORDS = sorted(path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__"))


def test_the_docstring_of_the_package_names_every_room_and_nothing_that_is_not_there() -> None:
    assert ikigai_actors.__doc__ is not None
    [rooms] = re.findall(r"bottom last:\n\n(.*)", ikigai_actors.__doc__, re.DOTALL)
    named = [name for line in rooms.splitlines() for name in re.findall(r"\w+", re.split(r"\s{3,}", line.strip())[0])]
    assert sorted(named) == sorted([*ROOMS, *WORDS])


BY_SUBJECT = {"records/fsck", "agent/builtin_calls", "shell", "shell/app", "shell/app/screens", "shell/app/transcript",
              "shell/app/widgets", "shell/cli", "shell/line", "testing", "verbs", "verbs/text"}  # fmt: skip
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


PAGES = sorted([*PACKAGE.rglob("README.md"), ROOT / "supervisors/README.md", ROOT / "docs/engineering/architecture.md"])
"""The page of the whole, and one for each room."""


def test_the_page_of_the_whole_names_every_room() -> None:
    page = (ROOT / "docs/engineering/architecture.md").read_text(encoding="utf-8")
    assert [room for room in ROOMS if f"`{room}/" not in page] == []
    assert [room for room in ROOMS if not (PACKAGE / room / "README.md").exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"`([\w./*-]+(?:/|\.py|\.sql))`", page.read_text(encoding="utf-8"))
    within = [page.parent, ROOT, PACKAGE, *(PACKAGE / room for room in ROOMS)]
    assert named
    assert [name for name in named if not any([*place.glob(name)] for place in within)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_page_of_a_room_is_short(page: Path) -> None:
    """A change is a list of at most five lines, each of at most forty words; a page has at most two screens."""
    text = page.read_text(encoding="utf-8")
    changes = [part.split("\n- ")[1:] for part in text.split("\n\n") if part.startswith("**")]
    assert [len(lines) for lines in changes if len(lines) > 5] == []
    assert [line for lines in changes for line in lines if len(line.split()) > 40] == []
    assert len(text.split()) < 900


def test_the_picture_of_the_architecture_is_drawn_from_the_imports_and_holds_every_room() -> None:
    picture = drawing()
    assert PICTURE.read_text(encoding="utf-8") == picture
    [width] = re.findall(r'viewBox="0 0 (\d+) ', picture)
    boxes = re.findall(r'class="room" x="(-?\d+)" y="\d+" width="(\d+)"', picture)
    assert len(boxes) == len(ROOMS) + 2
    assert [box for box in boxes if not 0 <= int(box[0]) <= int(width) - int(box[1])] == []
