"""The backup of a database: one file, made beside a running host, that is there as a whole or not at all."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, BadInput, OfflineProvider
from ikigai_actors.errors import StoreUnavailable, StoreUnusable
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.migrations import require_schema
from ikigai_actors.store.sqlite.backup import back_up
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, sql
from tests.kit.program import Program, run
from tests.store.test_copying import contents, furnish

pytestmark = pytest.mark.slow("copies in programs")


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Store]:
    """A database that was in use, and is no more."""
    furnish(str(tmp_path / "a.db"))
    with closing(open_store(tmp_path / "a.db")) as store:
        yield store


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory for backups alone."""
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups"


def test_a_backup_is_one_file_with_every_row_that_its_user_alone_may_read(source: Store, place: Path) -> None:
    before = contents(source)
    assert back_up(source, place / "b.db", check) == []
    assert names(place) == ["b.db"]
    assert (place / "b.db").stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(f"file:{place / 'b.db'}?mode=ro&immutable=1", uri=True)) as alone:
        assert alone.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert alone.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with closing(open_store(place / "b.db")) as copy:
        assert contents(copy) == contents(source) == before


def test_a_backup_beside_a_host_that_writes_is_consistent_and_has_what_was_acknowledged(
    tmp_path: Path, place: Path
) -> None:
    over = threading.Event()
    with (
        ActorSystem.open(tmp_path / "a.db", OfflineProvider()) as system,
        closing(open_store(tmp_path / "a.db")) as own,
    ):
        root = system.root
        root.send(root, "acknowledged")

        def write() -> None:
            while not over.is_set():
                root.send(root, "meanwhile")

        writing = threading.Thread(target=write)
        writing.start()
        try:
            for number in range(5):
                assert back_up(own, place / f"{number}.db", check) == []
        finally:
            over.set()
            writing.join(DEADLINE)
        assert names(place) == [f"{number}.db" for number in range(5)]
        root.prompt("and the host goes on").get(timeout=DEADLINE)
    with ActorSystem.open(place / "0.db", OfflineProvider()) as restored:
        assert restored._store.read(lambda tx: sql(tx, "SELECT body FROM mail WHERE id = 1")) == [("acknowledged",)]


def test_a_backup_overwrites_nothing(source: Store, place: Path) -> None:
    (place / "there").write_text("mine")
    (place / "nowhere").symlink_to(place / "missing")
    for name in ("there", "nowhere"):
        with pytest.raises(BadInput, match="overwrites nothing"):
            back_up(source, place / name, check)
    assert names(place) == ["nowhere", "there"]
    assert (place / "there").read_text() == "mine"


def test_a_backup_whose_name_is_taken_meanwhile_overwrites_nothing(source: Store, place: Path) -> None:
    with pytest.raises(BadInput, match="overwrites nothing"):
        back_up(source, place / "b.db", lambda copy: (place / "b.db").write_text("mine"))
    assert names(place) == ["b.db"]
    assert (place / "b.db").read_text() == "mine"


def test_a_backup_that_breaks_off_leaves_nothing(source: Store, place: Path) -> None:
    def breaks(copy: Store) -> None:
        copy.write(lambda tx: sql(tx, "UPDATE tree SET version = 7"))
        raise StoreUnavailable("The disk is full, as planned.")

    with pytest.raises(StoreUnavailable, match="as planned"):
        back_up(source, place / "b.db", breaks)
    assert names(place) == []


def test_a_backup_to_a_directory_that_is_not_there_says_so(source: Store, place: Path) -> None:
    with pytest.raises(StoreUnusable, match="no directory"):
        back_up(source, place / "missing" / "b.db", check)


def test_a_database_on_a_server_is_not_backed_up_and_the_way_to_do_it_is_told(
    new_postgres: NewDatabase, place: Path
) -> None:
    url = new_postgres()
    with ActorSystem.open(url, OfflineProvider()):
        done = run("--database", url, "backup", str(place / "b.db"))
    assert done.returncode == 1
    assert "pg_dump" in done.stderr
    assert "ikigai copy" in done.stderr
    assert names(place) == []


def test_the_command_backs_up_beside_a_running_shell(tmp_path: Path, place: Path) -> None:
    database, backup = str(tmp_path / "a.db"), str(place / "b.db")
    with Program.by_pipe("--database", database, "--provider", "offline") as program:
        program.say("tea")
        program.expect("You said “tea”")
        done = run("--database", database, "backup", backup)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[0] == f"Backed {database} up to {backup}."
        assert done.stdout.splitlines()[-1].endswith("no violation")
    again = run("--database", database, "backup", backup)
    assert (again.returncode, again.stdout) == (1, "")
    assert "overwrites nothing" in again.stderr
    assert run("--database", backup, "fsck").returncode == 0


@pytest.mark.sample(1, "targets")
@pytest.mark.parametrize("file", ["postgresql://bob:secret@host/db", "sqlite:///b.db", " "])
def test_a_backup_goes_to_a_file(source: Store, file: str) -> None:
    done = run("--database", source.location, "backup", file)
    assert done.returncode == 1
    assert "Expected the path of a new file" in done.stderr
    assert "secret" not in done.stderr


def test_a_damaged_database_is_not_backed_up(source: Store, place: Path) -> None:
    path = Path(source.location)
    source.write(lambda tx: sql(tx, "CREATE TABLE large (x)"))
    source.write(lambda tx: sql(tx, "INSERT INTO large VALUES (zeroblob(100000))"))
    source.close()
    with path.open("r+b") as damaged:
        damaged.seek(-50_000, os.SEEK_END)
        damaged.write(b"\xff" * 4096)
    with closing(open_store(path)) as store:
        require_schema(store)
        with pytest.raises(StoreUnusable, match="damaged"):
            back_up(store, place / "b.db", check)
    assert names(place) == []
