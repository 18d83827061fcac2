"""Databases whose cells hold anything: fsck reports or passes, opening works or is refused, by errors of ours."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.records.fsck.check import check
from ikigai_actors.shell.cli.main import run
from ikigai_actors.store import open_store
from tests.fuzz.hostile import cells, controls, fuzzed
from tests.fuzz.shells import Typist, printed, refusals_allowed
from tests.kit.damage import found_family

PATIENCE = 60.0


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound database, in one file."""
    path = tmp_path_factory.mktemp("sound") / "sound.db"
    store = open_store(str(path))
    found_family(store)
    store.close()
    return path


def tables(path: Path) -> list[tuple[str, str]]:
    """Every column of every table."""
    with closing(sqlite3.connect(path)) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        ]
        return [(name, row[1]) for name in names for row in connection.execute(f"PRAGMA table_info({name})")]


edits = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000), cells), min_size=1, max_size=3)


def damage(path: Path, changes: list[tuple[int, int, Any]]) -> None:
    """Replace cells, as no program of ours could."""
    columns = tables(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for column_number, row_number, value in changes:
            table, column = columns[column_number % len(columns)]
            rows = [row for (row,) in connection.execute(f"SELECT rowid FROM {table}")]
            if not rows:
                continue
            change = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = ?"
            try:
                connection.execute(change, (value, rows[row_number % len(rows)]))
            except sqlite3.IntegrityError:  # NOT NULL
                continue


LINES = (
    "/agents --all", "/history", "/context", "/check-mail", "/read-mail --all", "/filter-mail", "/doc",
    "/doc show plan.md", "/doc log plan.md", "/tools", "/child", "/history", "/fork", "/supervise",
)  # fmt: skip


def use(path: Path) -> None:
    """Whatever a person does with a database."""
    with ActorSystem.open(str(path), OfflineProvider()) as system, Typist(system, 80) as typist:
        for line in LINES:
            assert not controls(typist.do(line))


@fuzzed(12)
@given(edits)
def test_fsck_reports_or_passes_and_opening_works_or_is_refused(
    sound: Path, tmp_path: Path, changes: list[tuple[int, int, Any]]
) -> None:
    path = tmp_path / "damaged.db"
    shutil.copyfile(sound, path)
    damage(path, changes)
    with refusals_allowed(), closing(open_store(str(path))) as store:
        check(store)
    for words in (["fsck"], ["fsck", "--json"], ["agents", "--all"], ["agents", "--json"]):
        with printed() as paper:
            status = run(["--database", str(path), *words])
        assert status in (0, 1), paper.text
        assert not controls(paper.text), paper.text
    with refusals_allowed():
        use(path)
    for left in tmp_path.iterdir():
        left.unlink()


@pytest.mark.thorough("a second kind of damage")
@fuzzed(8)
@given(st.binary(min_size=1, max_size=8), st.integers(0, 10**9))
def test_a_file_with_broken_bytes_is_refused_or_read(sound: Path, tmp_path: Path, data: bytes, place: int) -> None:
    path = tmp_path / "damaged.db"
    whole = bytearray(sound.read_bytes())
    at = place % len(whole)
    whole[at : at + len(data)] = data
    path.write_bytes(whole)
    with printed() as paper:
        assert run(["--database", str(path), "fsck"]) in (0, 1), paper.text
    with refusals_allowed():
        use(path)
    for left in tmp_path.iterdir():
        left.unlink()
