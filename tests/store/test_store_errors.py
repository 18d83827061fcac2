"""What a person and a program are told when an SQLite file is not as it should be."""

import contextlib
import sqlite3
import tempfile
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem
from ikigai_actors.errors import StoreConflict, StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store import Transaction, open_store
from ikigai_actors.store.migrations import ensure_schema, newest, schema_version
from ikigai_actors.store.sqlite import transaction
from ikigai_actors.store.sqlite.store import SQLiteStore
from tests.kit.databases import printed, python, sql, tree_change, tree_version
from tests.kit.program import unmeasured


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An SQLite file with the schema, closed."""
    store = SQLiteStore(tmp_path / "a.db")
    ensure_schema(store)
    store.close()
    return tmp_path / "a.db"


def test_a_new_file_is_readable_for_its_user_alone(file: Path) -> None:
    store = SQLiteStore(file)
    store.write(tree_change)
    modes = {path.name: path.stat().st_mode & 0o777 for path in file.parent.iterdir() if path.is_file()}
    store.close()
    assert modes == {"a.db": 0o600, "a.db-wal": 0o600, "a.db-shm": 0o600}


def test_a_missing_directory_is_named_and_not_made(tmp_path: Path) -> None:
    for begin in (open_store, ActorSystem.open):
        with pytest.raises(StoreUnusable, match=r"no directory .*missing. Make it"):
            begin(tmp_path / "missing" / "a.db")
    assert not (tmp_path / "missing").exists()


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="Check that it is a file"):
        open_store(tmp_path)


def test_a_file_of_another_kind_is_no_database_and_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("milk, bread\n" * 1000)
    with pytest.raises(StoreUnusable, match="no SQLite database"):
        open_store(file)
    assert file.read_text() == "milk, bread\n" * 1000


def look_into(file: Path) -> None:
    """Open a database and read from it."""
    with contextlib.closing(open_store(file)) as store:
        schema_version(store)


def test_half_of_a_database_is_damaged(file: Path) -> None:
    with file.open("r+b") as whole:
        whole.truncate(file.stat().st_size // 2)
    with pytest.raises(StoreUnusable, match=r"damaged.*\.recover"):
        look_into(file)


def test_an_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    store = open_store(tmp_path / "a.db")
    assert ensure_schema(store) == newest()
    store.close()


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_that_is_deleted_or_replaced_while_open_is_noticed(file: Path, replace: bool) -> None:
    store = SQLiteStore(file)
    file.unlink()
    if replace:
        file.touch()
    for transact in (store.write, store.read):
        with pytest.raises(StoreUnusable, match="was deleted"):
            transact(tree_change)
    store.close()


def test_a_database_locked_by_another_connection_is_unavailable(file: Path) -> None:
    first, second = SQLiteStore(file), SQLiteStore(file, patience=0.01)

    def work(tx: Transaction) -> None:
        tree_change(tx)
        with pytest.raises(StoreUnavailable, match="another process is writing"):
            second.write(tree_change)

    first.write(work)
    second.write(tree_change)
    assert first.read(tree_version) == 2
    first.close()
    second.close()


def test_a_full_disk_is_unavailable_and_what_the_work_did_afterwards_is_not_committed(file: Path) -> None:
    """SQLite rolls back by itself when the disk is full; what came next would be a transaction of its own."""
    store = SQLiteStore(file)
    [(pages,)] = store.write(lambda tx: sql(tx, "PRAGMA page_count"))
    store.write(lambda tx: sql(tx, f"PRAGMA max_page_count = {pages}"))

    def work(tx: Transaction) -> None:
        tree_change(tx)
        for statement in (
            "CREATE TABLE t (x TEXT)",
            "INSERT INTO t VALUES (zeroblob(100000))",
            "UPDATE tree SET version = 9",
        ):
            with contextlib.suppress(StoreUnavailable):
                sql(tx, statement)

    with pytest.raises(StoreUnavailable, match=r"disk is full\. Free some space"):
        store.write(work)
    assert store.read(tree_version) == 0
    store.write(tree_change)
    assert store.read(tree_version) == 1
    store.close()


def test_a_write_that_the_system_refuses_is_unavailable(file: Path) -> None:
    script = """
        import resource, signal, sys
        from ikigai_actors.errors import StoreUnavailable
        from ikigai_actors.store import open_store
        store = open_store(sys.argv[1])
        store.write(lambda tx: tx.run("tree_change"))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            store.write(lambda tx: tx.run("tree_change"))
        except StoreUnavailable as error:
            print(type(error).__name__, error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        store.write(lambda tx: tx.run("tree_change"))
        print(store.read(lambda tx: tx.schema.execute("SELECT version FROM tree")))
        store.close()
    """
    said = printed(python(script, file))
    assert said.startswith("CommitUnknown")  # the log may have all of it
    assert "Check the disk" in said
    assert "may or may not be written" in said
    assert said.endswith("[(2,)]")


@pytest.mark.slow("takes half a second")
def test_mail_whose_commit_the_disk_refuses_until_the_system_gives_up_may_be_written_and_its_sender_is_told(
    tmp_path: Path,
) -> None:
    script = """
        import logging, resource, signal, sys
        from ikigai_actors import ActorSystem, OfflineProvider
        from ikigai_actors.errors import OutcomeUnknown, SystemClosed
        logging.disable()
        system = ActorSystem.open(sys.argv[1], OfflineProvider(), patience=0.2)
        root = system.root
        root.send(root, "first")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            root.send(root, "in doubt")
        except OutcomeUnknown as error:
            print(error)
        try:
            root.prompt("behind").get()
        except SystemClosed as error:
            print(type(error).__name__)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        system.close()
    """
    said = printed(python(script, tmp_path / "a.db"))
    assert said.splitlines()[0].startswith("It may or may not be written: COMMIT failed")
    assert said.splitlines()[1:] == ["SystemClosed"]


def test_a_conflict_that_only_commit_finds_is_a_conflict(file: Path) -> None:
    """A reference that is checked at the end: SQLite leaves the transaction open, and it is rolled back."""
    with contextlib.closing(SQLiteStore(file)) as store:
        store.write(lambda tx: sql(tx, "CREATE TABLE p (i PRIMARY KEY)"))
        store.write(lambda tx: sql(tx, "CREATE TABLE c (i REFERENCES p (i) DEFERRABLE INITIALLY DEFERRED)"))
        with pytest.raises(StoreConflict):
            store.write(lambda tx: sql(tx, "INSERT INTO c VALUES (1)"))
        assert store.read(lambda tx: sql(tx, "SELECT * FROM c")) == []


def test_a_file_that_may_not_be_written_is_unusable(file: Path) -> None:
    """Root may write everything, so the test gives that up in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        copy = Path(name, "a.db")
        copy.write_bytes(file.read_bytes())
        copy.chmod(0o444)
        script = """
            import os, sys
            from ikigai_actors.errors import StoreUnusable
            from ikigai_actors.store import open_store, queries
            from ikigai_actors.store.sqlite import store as read_before
            queries.queries()
            if os.geteuid() == 0:
                os.setuid(65534)
            try:
                store = open_store(sys.argv[1])
                store.write(lambda tx: tx.run("tree_change"))
            except StoreUnusable as error:
                print(error)
        """
        said = printed(python(script, copy, env=unmeasured()))
    assert "writable" in said or "may write" in said


def test_every_error_of_sqlite3_becomes_one_of_ours() -> None:
    kinds: list[type[Exception]] = [
        kind for kind in vars(sqlite3).values() if isinstance(kind, type) and issubclass(kind, Exception)
    ]
    assert len(kinds) >= 10
    for kind in kinds:
        assert isinstance(transaction.ours(kind("text"), "a.db"), StoreError)
        assert issubclass(kind, transaction.SQLITE_ERRORS), kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SQLITE_BUSY_SNAPSHOT", StoreUnavailable),
        ("SQLITE_LOCKED", StoreUnavailable),
        ("SQLITE_PROTOCOL", StoreUnavailable),
        ("SQLITE_IOERR_FSYNC", StoreUnavailable),
        ("SQLITE_IOERR_SHMMAP", StoreUnavailable),
        ("SQLITE_CONSTRAINT_CHECK", StoreConflict),
        ("SQLITE_READONLY_DIRECTORY", StoreUnusable),
        ("SQLITE_CANTOPEN_ISDIR", StoreUnusable),
        ("SQLITE_CORRUPT_INDEX", StoreUnusable),
        ("SQLITE_TOOBIG", StoreError),
    ],
)
def test_an_error_of_sqlite_is_told_by_its_name(name: str, kind: type[StoreError]) -> None:
    error = sqlite3.OperationalError("text")
    error.sqlite_errorname = name
    assert type(transaction.ours(error, "a.db")) is kind


def test_a_file_system_without_shared_memory_is_named() -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_SHMMAP"
    assert "Put it on a local file system" in str(transaction.ours(error, "a.db"))


@pytest.mark.slow("takes a tenth of a second")
def test_opening_a_file_imports_no_driver_of_another_database(tmp_path: Path) -> None:
    script = """
        import sys
        from ikigai_actors.store import open_store
        from ikigai_actors.store.migrations import ensure_schema
        store = open_store(sys.argv[1])
        ensure_schema(store)
        store.close()
        print(sorted({"psycopg", "asyncio", "logging", "platformdirs"} & set(sys.modules)))
    """
    said = printed(python(script, tmp_path / "a.db", fresh=True))
    assert said == "[]"
