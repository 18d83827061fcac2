"""Databases of earlier versions are exported and backed up by this program, and stay as they are."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.errors import StoreUnusable
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.transfer.export import export_file
from ikigai_actors.shell.cli.main import run
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.copy import tables_in_order
from ikigai_actors.store.earlier import as_of_today
from ikigai_actors.store.migrations import FIRST, OLDEST_READ, Migration, ensure_schema, newest, schema_version
from ikigai_actors.store.sqlite.store import SQLiteStore
from tests.fuzz.shells import printed
from tests.kit.databases import sql
from tests.store.test_released import made

pytestmark = pytest.mark.empty

KEPT = {int(path.stem): path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "readable").glob("*.sql")}
"""Databases as those versions have made them, by version: statements of SQLite."""


@pytest.fixture(params=sorted(KEPT))
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A database of an earlier version, as a file."""
    file = tmp_path / "earlier.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")  # as the program leaves it
        connection.executescript(KEPT[request.param])
    return file


@pytest.fixture
def earlier(file: Path, durable_url: Callable[[], str]) -> Iterator[Store]:
    """The same, in each kind of database."""
    with closing(sqlite3.connect(file)) as held:
        [(version,)] = held.execute("SELECT version FROM schema_version")
        tables, *_ = zip(*held.execute("SELECT name FROM sqlite_master WHERE type = 'table'"), strict=True)
        script = ";\n".join(text for (text,) in held.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"))
        with closing(made(durable_url(), f"{script};", version)) as store:

            def fill(tx: Transaction) -> None:
                for table in tables_in_order(set(tables) - {"schema_version"}):
                    names = [row[1] for row in held.execute(f"PRAGMA table_info({table})")]
                    rows = [tuple(row) for row in held.execute(f"SELECT {', '.join(names)} FROM {table}")]
                    tx.schema.load(table, names, [rows] if rows else [])

            store.write(fill)
            yield store


def exported(store: Store, file: Path) -> list[dict[str, Any]]:
    """The records of all agents."""
    export_file(store, "0", file, now=1)
    return [json.loads(line) for line in file.read_bytes().splitlines()]


@pytest.mark.slow("takes a tenth of a second")
def test_an_export_of_an_earlier_database_has_every_message_as_it_was_written(earlier: Store, tmp_path: Path) -> None:
    written = earlier.read(lambda tx: sql(tx, "SELECT agent_uuid, id, kind, content, hash FROM messages"))
    version = schema_version(earlier)
    with as_of_today(earlier) as copy:
        assert schema_version(copy) == newest()
        assert check(copy) == []
        records = exported(copy, tmp_path / "out")
        place = Path(copy.location)
    assert not place.exists()
    assert schema_version(earlier) == version
    messages = [record for record in records if record["record"] == "message"]
    names = ("agent", "id", "kind", "content")
    assert sorted((*(record[name] for name in names), bytes.fromhex(record["hash"])) for record in messages) == sorted(
        (*row[:4], bytes(row[4])) for row in written
    )
    with ActorSystem.open(tmp_path / "new.db", OfflineProvider()) as system:
        system.import_(tmp_path / "out")
        lead = system.agent("lead")
        assert [child.record.name for child in lead.children()] == ["buyer", "seller"]
        assert system.agent("seller").state == "stopped"
        assert [str(rule) for rule in system.agent("buyer").rules()] == ["deny bash git push *"]
        assert [message.content for message in lead.history()][-2:] == ["And now?", "Yes."]
        assert system.documents.read("plans/tea.md").body == "# Tea\n\n12 kg\n"


def test_the_commands_export_and_back_up_an_earlier_database_and_leave_it_as_it_is(file: Path, tmp_path: Path) -> None:
    before, backup, out = file.read_bytes(), tmp_path / "backup.db", tmp_path / "out"
    with printed() as paper:
        assert run(["--database", str(file), "backup", str(backup)]) == 0
        assert run(["--database", str(file), "export", "0", str(out)]) == 0
        assert run(["--database", str(file), "export", "lead", str(tmp_path / "codex"), "--to", "codex"]) == 0
    with closing(sqlite3.connect(backup)) as copy, closing(sqlite3.connect(file)) as own:
        assert list(copy.iterdump()) == list(own.iterdump())
    assert file.read_bytes() == before
    assert out.exists()
    assert ("was not checked" in paper.text) is (newest() not in KEPT)


@pytest.mark.sample(1, "versions")
@pytest.mark.parametrize("version", [1, OLDEST_READ - 1, 999])
def test_a_backup_needs_to_understand_no_version(tmp_path: Path, version: int) -> None:
    file = tmp_path / "a.db"
    with ActorSystem.open(file, OfflineProvider()) as system:
        system.root.fork(name="mast")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE schema_version SET version = ?", [version])
    with printed() as paper:
        assert run(["--database", str(file), "backup", str(tmp_path / "b.db")]) == 0
    assert f"It has version {version}, and this ikigai knows {newest()}: it was not checked." in paper.text
    with closing(sqlite3.connect(tmp_path / "b.db")) as copy:
        assert copy.execute("SELECT version, name FROM schema_version, agents WHERE name IS NOT NULL").fetchall() == [
            (version, "mast")
        ]


def test_a_database_that_a_step_brings_forward_is_read_after_that_step(durable_url: Callable[[], str]) -> None:
    steps = [Migration(newest() + 1, "CREATE TABLE teas (name TEXT PRIMARY KEY)", newest())]
    with closing(open_store(durable_url())) as store:
        ensure_schema(store)
        if isinstance(store, SQLiteStore):
            with as_of_today(store, steps) as copy:
                assert (schema_version(copy), schema_version(store)) == (newest() + 1, newest())
                assert copy.read(lambda tx: "teas" in tx.schema.tables())
            return
        with (
            pytest.raises(StoreUnusable, match="Make a backup with pg_dump; then start this ikigai"),
            as_of_today(store, steps),
        ):
            pass


def test_every_version_from_the_oldest_that_is_read_on_is_kept_or_that_of_today() -> None:
    assert min(KEPT) == OLDEST_READ <= FIRST
