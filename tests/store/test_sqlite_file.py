"""One SQLite file has one name, one log and one host, and whoever cannot be sure of that is told."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, OfflineProvider, SystemClosed
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.errors import StoreInUse, StoreUnusable
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.hosts.host import new_host, take_database
from ikigai_actors.store.hosts.rows import owner
from ikigai_actors.store.migrations import ensure_schema, newest, schema_version
from ikigai_actors.store.sqlite.file import lock_path
from ikigai_actors.store.sqlite.store import SQLiteStore
from tests.kit.databases import DEADLINE, printed, python, sql, tables, tree_change, tree_version
from tests.kit.hosts import Hosts

OWN = """
    import os, sys
    from ikigai_actors import ActorSystem, OfflineProvider
    from ikigai_actors.errors import IkigaiError
    def opened(name):
        return ActorSystem.open(name, OfflineProvider())
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An SQLite file with the schema, closed."""
    with closing(open_store(tmp_path / "a.db")) as store:
        ensure_schema(store)
    return tmp_path / "a.db"


def refusal(file: Path) -> str:
    """What another process is told that wants to run a database."""
    script = f"""{OWN}
    try:
        opened(sys.argv[1]).close()
    except IkigaiError as error:
        print(type(error).__name__, error)
    """
    return printed(python(script, file))


def test_a_file_with_a_second_hard_link_has_no_second_host(tmp_path: Path) -> None:
    link, other = tmp_path / "one.db", tmp_path / "other.db"
    with ActorSystem.open(link, OfflineProvider()) as system:
        os.link(link, other)
        said = refusal(other)
        assert said.startswith("StoreUnusable")
        assert "has 2 names (hard links)" in said
        assert f"find DIRECTORY -samefile {other}" in said
        system.root.prompt("tea").get(timeout=DEADLINE)  # who runs it already goes on
    with pytest.raises(StoreUnusable, match="hard links"):
        open_store(link)
    other.unlink()
    with ActorSystem.open(link, OfflineProvider()) as system:
        assert [message.content for message in system.root.history() if message.kind == "user"] == ["tea"]


@pytest.mark.slow("takes a second")
def test_a_file_whose_host_knows_it_by_another_name_is_not_taken(file: Path, take: Hosts) -> None:
    """As a file that is mounted alone in a container: its name has a lock of its own, the file has one."""
    host = python(
        """
        import fcntl, os, sys
        fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
        print("mine", flush=True)
        sys.stdin.readline()
        """,
        file,
    )
    assert host.stdout is not None
    assert host.stdout.readline() == "mine\n"
    with pytest.raises(StoreInUse, match="mount the directory"):
        take(file)
    assert printed(host) == ""
    take(file)


def test_a_host_holds_the_file_itself_until_it_gives_it_back(file: Path, take: Hosts) -> None:
    script = """
        import fcntl, os, sys
        try:
            fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
            print("free")
        except BlockingIOError:
            print("held")
    """
    host = take(file)
    assert printed(python(script, file)) == "held"
    host.release()
    assert printed(python(script, file)) == "free"


def test_stores_that_come_and_go_in_a_process_leave_the_locks_of_the_others(file: Path, take: Hosts) -> None:
    """A process that closes a descriptor of a file loses the locks by which SQLite knows that the log is in use."""
    script = """
        import sqlite3, sys
        from contextlib import closing
        with closing(sqlite3.connect(sys.argv[1], timeout=0)) as connection:
            try:
                connection.execute("PRAGMA journal_mode = DELETE")
                print("alone")
            except sqlite3.OperationalError as error:
                print(error)
    """
    host = take(file)
    for _ in range(3):
        with closing(open_store(file)) as beside:
            assert owner_is_known(beside)
    assert printed(python(script, file)) == "database is locked"
    host.release()


def owner_is_known(store: Store) -> bool:
    return store.read(owner) is not None


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
def test_a_log_that_is_deleted_or_replaced_is_noticed_before_anything_is_written(
    file: Path, suffix: str, replaced: bool
) -> None:
    store = open_store(file)
    store.write(tree_change)
    beside = file.with_name(file.name + suffix)
    beside.rename(file.with_name("moved"))
    if replaced:
        beside.write_bytes(b"")
    for transact in (store.write, store.read):
        with pytest.raises(StoreUnusable, match=rf"a\.db{suffix} was deleted or replaced while it was open"):
            transact(tree_change)
    store.close()


def test_a_host_whose_log_is_deleted_acknowledges_nothing_more_and_keeps_what_it_had(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    system = ActorSystem.open(file, OfflineProvider())
    root = system.root
    root.prompt("before").get(timeout=DEADLINE)
    file.with_name("a.db-wal").unlink()
    with pytest.raises(SystemClosed, match=r"a\.db-wal was deleted"):
        root.prompt("after").get(timeout=DEADLINE)
    system.close()
    with ActorSystem.open(file, OfflineProvider()) as again:
        assert [message.content for message in again.root.history() if message.kind == "user"] == ["before"]


def test_a_new_file_holds_its_schema_from_the_start(file: Path, tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "new.db")) as store:
        ensure_schema(store)
        shutil.copy(tmp_path / "new.db", tmp_path / "copy.db")
        store.write(tree_change)
        assert (tmp_path / "new.db-wal").stat().st_size > 0
    with closing(open_store(tmp_path / "copy.db")) as copy:
        assert schema_version(copy) == newest()


def test_a_file_with_a_log_keeps_it_whoever_opens_it_first(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.execute("PRAGMA journal_mode = DELETE")
    with closing(open_store(file)), closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def without_log(tmp_path: Path) -> Path:
    """The copy of a database in use, as an earlier program made it: all that it has is in a log that was not copied."""
    original, copy = tmp_path / "original.db", tmp_path / "copy.db"
    with closing(sqlite3.connect(original)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE schema_version (version INTEGER)")
        shutil.copy(original, copy)
    return copy


def test_a_copy_without_its_log_is_not_begun_anew(tmp_path: Path) -> None:
    copy = without_log(tmp_path)
    before = copy.read_bytes()
    with pytest.raises(StoreUnusable, match=r"has no table.*Put the log back") as refused:
        ActorSystem.open(copy, OfflineProvider())
    assert f"its log {copy}-wal is missing" in str(refused.value)
    assert "ikigai backup FILE" in str(refused.value)
    assert copy.read_bytes() == before
    assert [path.name for path in tmp_path.glob("copy.db?*")] == []


def test_an_empty_file_is_a_new_database_with_a_log(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    with closing(SQLiteStore(tmp_path / "a.db")) as store:
        assert tables(store) == set()
        ensure_schema(store)
        assert (tmp_path / "a.db-wal").exists()


def test_two_stores_that_are_open_before_the_schema_find_it(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "a.db")) as store, closing(open_store(tmp_path / "a.db")) as other:
        ensure_schema(store)
        ensure_schema(other)
        other.write(tree_change)
        store.write(tree_change)
        assert store.read(tree_version) == other.read(tree_version) == 2


def test_who_runs_a_file_is_asked_of_its_lock(file: Path, take: Hosts) -> None:
    """Not of a host name, which every start of a container has anew, nor of a pid, which each container has its own."""
    with closing(open_store(file)) as store:
        store.write(lambda tx: tx.run("register_host", id="dead", hostname="box1", pid=1, lease=0))
        assert store.read(owner) is None
        assert not lock_path(file).exists()  # asking makes none
        host = take(file)
        store.write(lambda tx: sql(tx, "UPDATE hosts SET pid = 4194305 WHERE ended_at IS NULL"))  # none has this pid
        holder = store.read(owner)
        assert holder is not None
        assert (holder.id, holder.pid, holder.is_gone) == (host.id, 4194305, False)
        host.release()
        assert store.read(owner) is None


def test_asking_for_the_host_keeps_nobody_from_becoming_it(file: Path) -> None:
    asking = python(
        """
        import sys
        from pathlib import Path
        from ikigai_actors.store.sqlite.file import is_locked
        print("asks", flush=True)
        while True:
            is_locked(Path(sys.argv[1]))
        """,
        file,
    )
    assert asking.stdout is not None
    assert asking.stdout.readline() == "asks\n"
    try:
        with closing(open_store(file)) as store:
            for number in range(50):
                take_database(new_host(store, f"host {number}", SystemClock())).release()
    finally:
        asking.kill()
        asking.communicate(timeout=DEADLINE)
