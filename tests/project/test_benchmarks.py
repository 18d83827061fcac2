"""The benchmarks' results: their file, their growth, and the tables of the pages, which are made of them.

Nothing is timed here.
"""

import importlib
import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import long, mail, report, table
from benchmarks.peers.sessions import Peer, Unavailable
from benchmarks.places import open_places
from benchmarks.results import RESULTS, Row, Run, beside_ours, growth, read, write
from tests.kit.databases import ROOT

OURS = Row("fork", "ikigai", "SQLite", 1_000, "inherited messages", 0.001, "s", "3 raw INSERTs", 0.0005)
PEER = Row("fork", "peer 1.2", "SQLite", 1_000, "inherited messages", 0.05, "s")
MISSING = Row("fork", "absent", "SQLite", 1_000, "inherited messages", None, "s", why="not installed")


def run(*rows: Row) -> Run:
    machine = {"processor": "a processor", "cores": 2, "memory": 24_000_000_000, "system": "Linux"}
    return Run("2026-01-01T00:00:00+00:00", 60.0, False, (0.5, 1.5), machine, {"Python": "3.11.7"}, rows)


def test_the_tables_of_the_page_are_those_of_the_committed_results() -> None:
    text = report.PAGE.read_text(encoding="utf-8")
    assert report.rendered(text, read(RESULTS)) == text
    assert set(re.findall(r"<!-- benchmark: ([\w-]+) -->", text)) == {*report.TABLES, "machine"}


def test_the_plots_that_the_page_shows_are_there() -> None:
    shown = set(re.findall(r"benchmarks/([\w-]+\.svg)\)", report.PAGE.read_text(encoding="utf-8")))
    assert shown == {path.name for path in report.PLOTS.iterdir()}


def test_results_come_back_from_their_file_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results = {"fork": run(OURS, PEER, MISSING), "cache": run()}
    write(path, results)
    assert read(path) == results
    assert {beside.name for beside in tmp_path.iterdir()} == {"results.json"}


def test_no_results_are_an_empty_file_of_them_and_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    assert read(path) == {}
    path.write_text('{"fork": {"rows": 3}}', encoding="utf-8")
    with pytest.raises(ValueError, match="to hold results of the benchmarks"):
        read(path)


@pytest.mark.thorough("a benchmark; every run has the small ones")
def test_a_turn_of_a_hundred_model_calls_and_a_long_conversation_ends_in_less_than_3_mb(tmp_path: Path) -> None:
    long.ours(tmp_path, long.prompt(long.MODEL_CALLS), long.MODEL_CALLS)
    assert long._size(tmp_path) < 3_000_000


@pytest.mark.thorough("a benchmark; every run has the small ones")
def test_mails_are_inserted_and_filled_in_as_the_store_has_them() -> None:
    with ExitStack() as stack:
        [place] = open_places(stack, "SQLite")
        assert mail._by_bulk_insert(place, recipients=1, each=1, senders=2) > 0
        assert min(mail._read(place, unread=2, read=1, senders=2)) > 0


@given(
    st.floats(-2, 3),
    st.floats(1e-6, 1e6),
    st.lists(st.integers(1, 1_000_000), min_size=2, max_size=5, unique=True),
)
def test_the_growth_of_a_power_is_its_exponent(power: float, factor: float, sizes: list[int]) -> None:
    rows = [replace(OURS, size=size, figure=factor * size**power) for size in sizes]
    assert growth([replace(OURS, size=0), *rows]) == pytest.approx(power, abs=1e-3)


def test_a_peer_stands_beside_our_figure_of_the_same_size_and_backend() -> None:
    elsewhere = replace(OURS, backend="PostgreSQL", figure=0.004)
    ours, other, peer, file, longer = beside_ours(
        [OURS, elsewhere, replace(PEER, backend="PostgreSQL"), replace(PEER, backend="file"), replace(PEER, size=7)]
    )
    assert (ours, other) == (OURS, elsewhere)
    assert (peer.beside, peer.limit) == ("ikigai, PostgreSQL", 0.004)
    assert (file.beside, file.limit, file.ratio) == ("ikigai, SQLite", 0.001, 50)
    assert (longer.beside, longer.ratio) == ("", None)


def test_a_peer_that_is_not_installed_is_named_in_the_tables() -> None:
    rows = (OURS, PEER, MISSING)
    [line] = [line for line in table.tables(rows).splitlines() if "absent" in line]
    assert "not installed" in line
    text = report.rendered("<!-- benchmark: fork -->\n<!-- end -->", {"fork": run(*rows)})
    assert re.search(r"\| absent, SQLite +\| +not installed \|", text)


def test_a_peer_whose_package_is_missing_is_not_installed() -> None:
    peer = Peer("absent", "no-such-package", "benchmarks.peers.no_such_module", "Session", "file", 10)
    assert peer.who == "absent"
    with pytest.raises(Unavailable, match="not installed"), peer.session([], 5):
        raise AssertionError("There is no such session.")


def test_a_table_that_nothing_is_known_of_is_refused_and_one_without_results_says_so() -> None:
    assert "Not measured yet." in report.rendered("<!-- benchmark: fork -->\nold\n<!-- end -->", {})
    with pytest.raises(ValueError, match="got 'forks'"):
        report.rendered("<!-- benchmark: forks -->\n<!-- end -->", {})


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.0012345, "s", "1.23 ms"),
        (2.0, "s", "2 s"),
        (3e-7, "s", "0.3 µs"),
        (53_100_000, "B", "53.1 MB"),
        (41_234.5, "/s", "41,234/s"),
        (3, "rows", "3"),
    ],
)
def test_a_figure_is_shown_in_the_unit_that_suits_it(value: float, unit: str, shown: str) -> None:
    assert table.show(value, unit) == shown


def test_every_benchmark_can_be_imported() -> None:
    """But for what draws, which needs a library of its own."""
    for path in sorted((ROOT / "benchmarks").glob("[a-z]*.py")):
        if path.stem != "plots":
            importlib.import_module(f"benchmarks.{path.stem}")
