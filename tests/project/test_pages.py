"""The pages for users have one shape, and no folder says more than a person reads."""

import re
from pathlib import Path
from typing import get_args

import pytest

from ikigai_actors import errors, events
from ikigai_actors.records.messages.messages import Kind, Trait
from ikigai_actors.records.messages.settings import SETTINGS
from tests.kit.databases import ROOT

DOCS = ROOT / "docs"
MOST = {"start": 3000, "build": 12_300, "use": 4000, "improve": 2500, "operate": 6000, "integrate": 7000}
"""Words outside of code that the pages of a folder have at most."""
PAGES = sorted(path for folder in MOST for path in (DOCS / folder).glob("*.md"))
TASKS = [
    page for page in PAGES if page.parent.name != "start" and page.stem not in {"guests", "recipes", "troubleshooting"}
]
"""The pages that answer one question of a person."""
BASES = {errors.IkigaiError, errors.AgentError, errors.DocumentError, errors.StoreError, errors.Repeated}
"""Errors that nobody sees as such: bases, and one that stays within the library."""


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize("folder", MOST)
def test_a_folder_has_no_more_words_than_its_limit(folder: str) -> None:
    assert sum(len(prose(page).split()) for page in (DOCS / folder).glob("*.md")) <= MOST[folder]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_has_one_title_and_short_lines_and_cells(page: Path) -> None:
    lines = prose(page).splitlines()
    assert [line for line in lines if line.startswith("# ")] == lines[:1]
    assert [line for line in lines if len(line) > 100 and not re.match(r"[|!]|\s*[-\d.*]* ?\S+$|    ", line)] == []
    cells = [cell for line in lines if line.startswith("|") for cell in re.split(r"(?<!\\)\|", line)]
    assert [cell for cell in cells if len(re.sub(r"`[^`]*`|\([^)]*\)", "x", cell).split()) > 20] == []


@pytest.mark.parametrize("page", TASKS, ids=name)
def test_a_page_begins_with_what_you_can_do_afterwards_and_ends_with_what_goes_wrong(page: Path) -> None:
    assert re.match(
        r"# .+\n\nAfter (?:reading )?this page,? you|# .+\n\nAfter this page, ", page.read_text(encoding="utf-8")
    )
    assert re.search(r"^## (?:What goes wrong|What is not promised|Metrics)$", prose(page), re.M)


def test_every_error_that_a_person_meets_is_on_the_page_of_errors() -> None:
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    raised = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert len(raised) > 50
    assert [each.__name__ for each in raised if each not in BASES and f"`{each.__name__}`" not in page] == []


def rows(page: str, title: str) -> dict[str, list[str]]:
    """The rows of a table below a title of a page, by each name in the first cell."""
    text = (DOCS / "reference" / page).read_text(encoding="utf-8").partition(f"\n{title}\n")[2]
    cells = [line.strip("| ").split(" | ") for line in text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return {each: row for row in cells for each in re.findall(r"`(\w+)`", row[0])}


def test_every_setting_is_on_the_page_of_settings() -> None:
    listed = rows("settings.md", "")
    assert listed.keys() == SETTINGS.keys()
    marked = re.findall(r"`(\w+)` ¹", (DOCS / "reference" / "settings.md").read_text(encoding="utf-8"))
    assert set(marked) == {each for each, setting in SETTINGS.items() if setting.of_the_model}


def test_every_event_and_kind_of_message_is_on_the_page_of_events() -> None:
    listed = rows("events.md", "## Events of agents") | rows("events.md", "## Events of a system")
    classes = {each.__name__: each for each in get_args(events.Event)}
    assert listed.keys() == classes.keys()
    for each, (_, _, fields) in listed.items():
        assert [field for field in re.findall(r"`(\w+)`", fields) if not hasattr(classes[each], field)] == []
    kinds = rows("events.md", "## Kinds of messages")
    assert kinds.keys() == set(Kind)
    shown = {each for each, row in kinds.items() if row[2] == "yes"}
    assert shown == {kind for kind in Kind if Trait.CONVERSATION in kind.traits}
