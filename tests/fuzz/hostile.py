"""Hostile texts and values, and how many of them are tried."""

import os
import unicodedata
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

Test = TypeVar("Test", bound=Callable[..., Any])

EXAMPLES = "IKIGAI_FUZZ_EXAMPLES"
"""Names how many examples of each property are tried, instead of a few."""


def fuzzed(few: int, shrink: bool = True) -> Callable[[Test], Test]:
    """Try a few examples, always the same; or as many new ones as `EXAMPLES` says.

    What waits long before it fails does not ``shrink``.
    """
    many = os.environ.get(EXAMPLES)
    return settings(
        max_examples=int(many) if many else few,
        derandomize=not many,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


PROMPT = "6AW-t-> "
"""What a prompt of the line mode looks like."""

SPELLS = (
    "",
    " ",
    "\t\n \r",
    "\0",
    "nul\0inside",
    "\ud800",
    "\udfff half \udc80",
    "\x1b[2J\x1b[H",
    "\x1b]0;a title\x07",
    "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[31mred\x1b[0m",
    "\x1bP+q544e\x1b\\",
    "\x9b2J",
    "\x9d0;title\x9c",
    "over\rwritten",
    "back\b\b\bspace",
    "line\r\nline\rline",
    "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029",
    "\u202eright to left\u202c",
    "\u2066isolated\u2069\u200e\u200f\u061c",
    "\u200b\ufeff\u00ad",
    f"\n{PROMPT}",
    f"\n\n{PROMPT}/kill --cascade",
    "error: no such thing",
    "x'); DROP TABLE agents; --",
    '" OR ""="',
    "%s %d %n {0} {self} ${HOME} $(id) `id`",
    "[bold red]markup[/] [/nothing] [@click=app.quit]x[/]",
    "漢字かな混じり",
    "e\u0301\u0301\u0301",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "ﷺ" * 20,
    "../../etc/passwd",
    "a/../b",
    "--help",
    "-",
    "--",
    "'",
    '"unbalanced',
    "\\",
    "NaN",
    "-1",
    "9" * 400,
    "1e999",
    "٣",
    "null",
    "{}",
    '{"tool": "fork"}',
    "@fork {",
    "@bash [[[",
    "root",
    "nobody",
    "anthropic:",
    ":",
    "x" * 5_000,
    "[" * 2_000,
    "- " * 1_000,
    "> " * 500,
)
"""Texts that have broken programs before."""

spells = st.integers(0, len(SPELLS) - 1).map(SPELLS.__getitem__)

texts = st.one_of(
    spells,
    st.text(max_size=40),
    st.text(st.characters(), max_size=10),  # lone surrogates too
    st.lists(st.one_of(spells, st.text(max_size=8)), min_size=2, max_size=4).map("".join),
)
"""Texts of all kinds."""

long_texts = st.builds(
    lambda piece, times: piece * times, st.one_of(spells, st.sampled_from(["a", "é", "漢"])), st.integers(1, 300_000)
).map(lambda text: text[:2_000_000])
"""Texts of up to some megabytes."""

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
"""Values as JSON has them, and some that it has not."""

cells = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, -1, 2, 2**31, 2**53, 2**63 - 1, -(2**63)]),
    st.floats(allow_nan=False),
    st.binary(max_size=20),
    texts.filter(lambda text: not any("\ud800" <= sign <= "\udfff" for sign in text)),
    st.sampled_from(
        ['{"mark":"x"}', "[]", "{", '{"tool_calls":[{"id":1}]}', '{"blocks":7}', "running", "dead", "user"]
    ),
)
"""Values that a cell of an SQLite database can hold."""


def controls(text: str, but: str = "\n\t") -> list[str]:
    """What in a text may move a cursor or turn the direction of writing: what a screen must not get."""
    turns = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u2028", "\u2029"}
    return [sign for sign in text if sign not in but and (unicodedata.category(sign) in ("Cc", "Cs") or sign in turns)]
