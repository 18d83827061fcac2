"""The pages and rooms in plain English have no word of the project's old dialect."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.databases import ROOT
from tests.project.test_layers import STRING, nodes, source

PAGES = sorted((ROOT / "docs").rglob("*.md"))

READMES = [ROOT / name for name in ("CONTRIBUTING.md", "README.md")]
READMES += sorted(
    path for room in ("ikigai_actors", "supervisors", "tests") for path in (ROOT / room).rglob("README.md")
)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


MODULES = {
    name(room): sorted(room.rglob("*.py")) if room.is_dir() else [room]
    for room in (*sorted((ROOT / "ikigai_actors").iterdir()), ROOT / "supervisors")
    if room.suffix in ("", ".py") and room.name != "__pycache__"
}
"""The modules of each room."""

WORDS = {
    "anew": "again",
    "behind(?! (?:the|a) fence)": "after",
    "begin or end of": "start or end of",
    "both faces|(?:sync|aio) faces": "sync and async handles",
    "by (?:now|then)": "now, then",
    "for ever": "forever",
    "in the midst": "in the middle",
    "holds? back": "reserves",
    "likewise": "too",
    "of late": "recently",
    "otherwise than": "differently from",
    "signs? of life": "heartbeat",
    "so many": "this many",
    "stand-ins?": "offline provider",
    "stands?(?!-in)(?! in for)": "is, are",
    "(?:am|are|be|been|is|was|were) told": "reads, gets, hears",
    "tells?(?!:)": "reports, prints, raises, says",
    "whence": "from where",
    "(?-i:Who)(?! [^.]*[?])": "you, or if you",
    "whoever": "the one who acts, by name",
    "whom": "who",
}
"""What to write in place of each; an expression for what has several forms."""

FOR_USERS = {
    "hears?": "receives, reads",
    "(?:unread|steering|withdrawn) words?": "steering message",
}
"""What to write in place of each on the pages for users."""

ANY = re.compile(rf"\b(?:{'|'.join(WORDS)})\b".replace(" ", r"\s+"), re.IGNORECASE)
"""Whether a text has one of them, perhaps within code."""

CODE = re.compile(r"^```.*?^```$|`[^`]+`|[“\"][^”\"\n]*[”\"]", re.MULTILINE | re.DOTALL)


SENTENCE = re.compile(r"(?<=[.?!])\s+|\n\s*\n|\n(?=[-|#])")


def without_code(text: str) -> str:
    """The page with code and quotations blotted out, each line in its place."""
    return CODE.sub(lambda code: re.sub(r"\S", "`", code[0]), text)


def dialect(text: str, words: dict[str, str] = WORDS) -> list[str]:
    """Each such word of a page outside of code and quotations: its line, itself, what to write."""
    if words is WORDS and not ANY.search(text):
        return []
    prose = without_code(text)
    matches = [
        (prose.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), better)
        for word, better in words.items()
        for match in re.finditer(rf"(?<!\.)\b(?:{word})\b(?!\()".replace(" ", r"\s+"), prose, re.IGNORECASE)
    ]
    return [f"{line}: {word!r}; write: {better}" for line, word, better in sorted(matches)]


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=name)
def test_a_page_is_in_plain_english(page: Path) -> None:
    assert [f"{name(page)}:{each}" for each in dialect(page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "engineering"], ids=name)
def test_a_page_for_users_has_no_word_that_only_we_use(page: Path) -> None:
    assert [f"{name(page)}:{each}" for each in dialect(page.read_text(encoding="utf-8"), FOR_USERS)] == []


def overloaded(text: str) -> list[str]:
    """Each sentence of a page that has both a semicolon and a colon: more than one fact."""
    return [each for each in SENTENCE.split(without_code(text)) if ";" in each and re.search(r":\s", each)]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_sentence_of_a_page_has_no_semicolon_beside_a_colon(page: Path) -> None:
    assert overloaded(page.read_text(encoding="utf-8")) == []


def test_a_sentence_with_both_is_reported_and_code_is_not() -> None:
    assert overloaded("It is so: one; two. This is `a: b`; fine. So is: this.") == ["It is so: one; two."]


def test_a_word_is_reported_with_its_line_and_the_word_to_use() -> None:
    page = "Again.\n\n```sh\nikigai tell\n```\n\nThe offline provider lives for\never. Who asks is told.\nWho asks?\n"
    assert dialect(page) == [
        "7: 'for ever'; write: forever",
        "8: 'Who'; write: you, or if you",
        "8: 'is told'; write: reads, gets, hears",
    ]
    assert dialect("Of “for ever” and `anew` nothing is reported.") == []


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings and other strings of several words of a module that has such a word, each with its line."""
    strings = "".join(re.findall(rf"({STRING})|#[^\n]*", source(path), re.DOTALL))
    if not ANY.search(re.sub(r'"\s*"', "", strings)):  # across the ends of adjacent strings, too
        return
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


@pytest.mark.parametrize("room", MODULES)
def test_the_strings_of_a_room_are_in_plain_english(room: str) -> None:
    assert [
        f"{name(path)}:{line} {each}" for path in MODULES[room] for line, text in texts(path) for each in dialect(text)
    ] == []


def test_a_string_of_a_module_is_reported_and_a_name_is_not(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""What it tells."""\n\nTELL = "tell"\nERROR = f"{TELL} anew"\n', encoding="utf-8")
    assert [(line, dialect(text)) for line, text in texts(module) if dialect(text)] == [
        (1, ["1: 'tells'; write: reports, prints, raises, says"]),
        (4, ["1: 'anew'; write: again"]),
    ]
