"""The tiers of the suite, a plugin of pytest: which tests run when, and in which order.

    quick       after each change: what is pure, and all on the embedded stores
    standard    before each stop, and in CI: PostgreSQL, doors, programs, whatever takes over a tenth of a second
    thorough    before a release: every database below every feature, Ray, soaks, campaigns

A mark says the first tier that runs a test, and why: ``slow("starts a host")`` is standard, ``thorough("a minute of
Ray")`` is thorough; without one it is quick. What runs on PostgreSQL is slow by itself, and so are the folders of
programs and screens (`SLOW`), which the quick tier does not even import.

A test that takes ``database``, ``store`` or ``durable`` is one for each kind of database. In ``tests/store`` all run.
Of the others each runs on the nearest embedded store, and on PostgreSQL as well

- a file's first such case, where the file is of those that run statements (``tests/records``, but not `UNSERVED`) or
  is `SERVED`;
- a folder's first such case.

The thorough tier runs them all everywhere.

Of a test with many cases that show the same thing, ``sample(3, "why")`` leaves three to the tiers below the thorough
one, spread evenly. Of the examples that Hypothesis makes up for a property, the same ones each time, the thorough tier
tries all, and the others a sixteenth.
"""

import os
from collections.abc import Iterable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

TESTS = Path(__file__).parents[1]
"""Where the tests lie."""


T = TypeVar("T")


class Tier(IntEnum):
    """When a test runs: in this tier, and in those above."""

    QUICK = 0
    STANDARD = 1
    THOROUGH = 2


class Case(NamedTuple):
    """What decides on a test's tier."""

    folder: str
    """The one below ``tests``."""
    marked: Tier = Tier.QUICK
    database: str | None = None
    """The kind of database that it was made for."""
    nearest: bool = True
    """Whether that kind is the nearest one at hand."""
    first: bool = False
    """Whether it shows its folder, or a file that each run shows, on PostgreSQL."""


SLOW = (
    *("cluster", "doors", "fuzz", "programs", "shell/app", "shell/cli", "shell/web", "soak", "torture"),
    *("providers/test_pydantic_ai_provider.py", "system/test_kept_secrets.py", "tools/test_a2a_agent.py"),
)
"""Folders that are not in the quick tier, and files whose imports take it a second. Of each kind of program that tier
has one elsewhere, of the shell the line mode, of what doors do the verbs that they call."""

_SLOW = tuple(f"{TESTS / path}{os.sep}" for path in SLOW)

STORE, SQL = "store", "records"
"""The folder in which each kind of database is tried, and the one in which each kind of SQL is."""

SERVED = {
    f"tests/system/test_{name}.py"
    for name in ("attached", "budgets", "event_feed", "keys", "remote_commands", "reply_streams", "timers")
}
"""Files above `SQL` of which each run shows a case on PostgreSQL: processes hear of one another by the server there."""

UNSERVED = {
    f"tests/records/test_{name}.py"
    for name in ("bad_input", "damaged_ancestors", "identity", "proof", "scrollback", "settings")
}
"""Files of `SQL` of which no such case is shown: they open whole systems, whose statements other files run there."""

NEAREST = {"database_url": "memory", "durable_url": "sqlite"}
"""The fixtures that are made for several databases, and the kind that is nearest at hand for each."""


EXAMPLES = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps the settings of a test."""

FEWEST = 5
"""Examples of a property that each run tries, if it has as many."""


def tier(case: Case) -> Tier:
    """The first tier in which a test runs."""
    if case.database is None:
        return case.marked
    if not (case.nearest or case.first or case.folder == STORE):
        return Tier.THOROUGH
    return max(case.marked, Tier.STANDARD if case.database == "postgres" else Tier.QUICK)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The tier of a run."""
    names = [tier.name.lower() for tier in Tier]
    parser.addoption("--tier", choices=names, default="standard", help="which tests run: see tests.kit.tiers")


def pytest_configure(config: pytest.Config) -> None:
    """The marks."""
    config.addinivalue_line("markers", "slow(reason): not in the quick tier")
    config.addinivalue_line("markers", "thorough(reason): in the thorough tier alone")
    config.addinivalue_line("markers", "sample(count, reason): all but so many of its cases in the thorough tier alone")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import slow folders for the quick tier."""
    slow = config.getoption("--tier") == "quick" and f"{collection_path}{os.sep}" in _SLOW
    return True if slow else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is of a tier above."""
    chosen = Tier[config.getoption("--tier").upper()]
    tiers = list(zip(_sampled([tier(case) for case in _cases(items)], items), items, strict=True))
    if left := [item for tier, item in tiers if tier > chosen]:
        config.hook.pytest_deselected(items=left)
    items[:] = [item for tier, item in tiers if tier <= chosen]
    if chosen < Tier.THOROUGH:
        _try_fewer(items)


def _sampled(tiers: Sequence[Tier], items: Sequence[pytest.Item]) -> Iterable[Tier]:
    """Leave to the thorough tier the cases of a test that are not in its sample."""
    tests: dict[tuple[str, int], list[int]] = {}
    for index, (tier, item) in enumerate(zip(tiers, items, strict=True)):
        if tier < Tier.THOROUGH and (mark := item.get_closest_marker("sample")):
            assert len(mark.args) == 2, f"{item.nodeid}: Give the reason: sample(COUNT, REASON)."
            tests.setdefault((item.nodeid.partition("[")[0], mark.args[0]), []).append(index)
    left = {index for (_, count), cases in tests.items() for index in {*cases} - {*spread(cases, count)}}
    return (Tier.THOROUGH if index in left else tier for index, tier in enumerate(tiers))


def spread(things: Sequence[T], count: int) -> list[T]:
    """So many of these, or all, at distances that are as even as they can be; the first one is among them."""
    count = min(count, len(things))
    return [things[number * len(things) // count] for number in range(count)]


def _try_fewer(items: Iterable[pytest.Item]) -> None:
    for test in {item.obj for item in items if isinstance(item, pytest.Function)}:
        known = getattr(test, EXAMPLES, None)
        if known is not None and known.derandomize:  # others are looked for by hand
            fewer = min(known.max_examples, max(FEWEST, known.max_examples // 16))
            setattr(test, EXAMPLES, type(known)(known, max_examples=fewer))


def _cases(items: Iterable[pytest.Item]) -> Iterable[Case]:
    firsts: set[str] = set()
    for item in items:
        parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        fixture = next((name for name in NEAREST if name in parameters), None)
        kind = str(parameters[fixture]) if fixture else None
        if kind is None and ("postgres_url" in getattr(item, "fixturenames", ()) or "postgres" in parameters.values()):
            kind = "postgres"
        file = item.location[0]
        folder = item.nodeid.removeprefix("tests/").split("/", 1)[0]
        first = False
        if fixture and kind == "postgres" and marked(item) < Tier.THOROUGH:
            shown = {folder, file} if file in SERVED or (folder == SQL and file not in UNSERVED) else {folder}
            first = not shown <= firsts
            firsts |= shown
        yield Case(folder, marked(item), kind, nearest=fixture is None or kind == NEAREST[fixture], first=first)


def marked(item: pytest.Item) -> Tier:
    """The tier that a test's marks and its folder say."""
    for name, marked in (("thorough", Tier.THOROUGH), ("slow", Tier.STANDARD)):
        if mark := item.get_closest_marker(name):
            assert len(mark.args) == 1, f"{item.nodeid}: Give the reason: {name}(REASON)."
            return marked
    slow = f"{item.path}{os.sep}".startswith(_SLOW)  # asked here too: a root of a run is not asked above
    return Tier.STANDARD if slow else Tier.QUICK
