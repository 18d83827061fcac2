"""A file that needs its log says so: whatever is copied at whatever moment opens as a whole state, or not at all."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.errors import StoreUnusable
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import open_store
from ikigai_actors.store.hosts.host import Host, new_host, take_database
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.sqlite.backup import back_up
from ikigai_actors.store.sqlite.file import lock_path, log_path
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.store.sqlite.wal import LOG_PAGES, belongs, following
from tests.kit.databases import DEADLINE, sql, tree_change, tree_version

BIG = "INSERT INTO documents (path, version, body, created_at) VALUES ('p', {}, printf('%.{}c', 'x'), 1)"


def copy_both(file: Path, to: Path) -> None:
    """Copy a file and its log: what a process leaves that is killed at this moment."""
    shutil.copy(file, to)
    if log_path(file).exists():
        shutil.copy(log_path(file), log_path(to))
    if lock_path(file).exists():
        shutil.copy(lock_path(file), lock_path(to))


def state(file: Path) -> int | None:
    """Open a copy and close it; return what it holds, None when it is refused."""
    try:
        with closing(open_store(file)) as store:
            return store.read(tree_version)
    except StoreUnusable as refused:
        assert "was in use, and its log" in str(refused)  # noqa: PT017 - else it is returned
        return None


class Life:
    """A file, its host, and copies that are made before each statement that the host's store runs."""

    def __init__(self, place: Path) -> None:
        self.file, self.copies = place / "a.db", place / "copies"
        self.copies.mkdir()
        self.acknowledged: list[int] = []
        with closing(open_store(self.file)) as new:
            ensure_schema(new)
        self.store = SQLiteStore(self.file)
        self.store._writer.connection.set_trace_callback(self._copy)
        self.host: Host | None = None

    def begin(self) -> None:
        """Let it have a host."""
        self.host = take_database(new_host(self.store, f"host {len(self.acknowledged)}", SystemClock()))

    def change(self, times: int = 1) -> None:
        """Commit something."""
        for _ in range(times):
            self.store.write(tree_change)

    def _copy(self, statement: str) -> None:
        with closing(sqlite3.connect(self.file)) as reader:  # what is committed at this moment
            [(version,)] = reader.execute("SELECT version FROM tree")
        copy_both(self.file, self.copies / str(len(self.acknowledged)))
        self.acknowledged.append(version)

    def judge(self) -> list[int | None]:
        """Check every copy; return what each file alone was taken for."""
        states = []
        for number, acknowledged in enumerate(self.acknowledged):
            both, alone = self.copies / str(number), self.copies / f"{number} alone"
            shutil.copy(both, alone)
            states.append(state(alone))
            assert states[-1] in (None, acknowledged), number
            assert state(both) == acknowledged, number
            assert not log_path(both).exists()
            assert state(both) == acknowledged, f"{number}, after a client has closed it"
        return states


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    """A file with the schema, open, without a host yet."""
    life = Life(tmp_path)
    yield life
    if life.host is not None:
        life.host.release()
    life.store.close()


@contextmanager
def reading(file: Path) -> Iterator[sqlite3.Connection]:
    """Another process in the middle of a transaction that reads."""
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM tree").fetchall()
        yield reader
        reader.execute("ROLLBACK")


@pytest.mark.thorough("a copy at every moment")
@pytest.mark.slow("takes half a second")
def test_at_every_moment_of_a_hosts_life_the_file_alone_is_refused_or_whole_and_with_its_log_it_opens(
    life: Life,
) -> None:
    life.begin()
    begun = len(life.acknowledged)
    life.change(3)
    life.store.checkpoint()
    life.change()
    life.store.write(lambda tx: sql(tx, BIG.format(1, LOG_PAGES * 4096)))  # moved at once, since it is long
    life.change()
    with reading(life.file):
        life.change()
        life.store.checkpoint()  # a part
        life.change()
        life.store.checkpoint()
    life.change()
    assert life.host is not None
    life.host.release()
    life.store.close()
    states = life.judge()
    assert set(states[begun:]) == {None}
    assert state(life.file) == life.acknowledged[-1]


@pytest.mark.slow("takes a tenth of a second")
def test_a_reader_from_before_the_host_delays_the_mark_and_keeps_nothing_from_being_written(life: Life) -> None:
    with reading(life.file):
        life.begin()
        life.change(2)
        unmarked = len(life.acknowledged)
    life.change(2)
    copy_both(life.file, life.copies / "killed")
    shutil.copy(life.file, life.copies / "alone")
    assert state(life.copies / "alone") is None
    assert state(life.copies / "killed") == life.store.read(tree_version)
    assert all(state(life.copies / str(number)) == life.acknowledged[number] for number in range(unmarked))


def test_a_close_moves_the_mark_last(life: Life) -> None:
    """Else a copy that is made while pages are moved has the mark of a whole file, and old pages."""
    life.begin()
    life.change(3)
    assert life.host is not None
    life.host.release()
    before = life.file.read_bytes()
    life.store.close()
    after = life.file.read_bytes()
    assert (before[:4096] == after[:4096], before[4096:] == after[4096:]) == (False, True)


def test_a_copy_in_the_first_second_of_a_system_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file, copy = tmp_path / "a.db", tmp_path / "b.db"
    with ActorSystem.open(file, OfflineProvider()) as system:
        shutil.copy(file, copy)
        before = copy.read_bytes()
        system.root.prompt("tea").get(timeout=DEADLINE)
        with pytest.raises(StoreUnusable, match=r"b\.db was in use, and its log .*b\.db-wal is missing") as refused:
            ActorSystem.open(copy, OfflineProvider())
    assert "ikigai backup FILE" in str(refused.value)
    assert copy.read_bytes() == before
    assert [path.name for path in tmp_path.glob("b.db?*")] == []
    shutil.copy(file, copy)
    with ActorSystem.open(copy, OfflineProvider()) as closed:
        assert [message.content for message in closed.root.history() if message.kind == "user"] == ["tea"]


def test_a_copy_is_taken_as_it_is_in_the_way_that_its_refusal_tells(life: Life, tmp_path: Path) -> None:
    life.begin()
    life.change()
    life.store.checkpoint()
    shutil.copy(life.file, tmp_path / "b.db")
    with closing(sqlite3.connect(tmp_path / "b.db")) as shell:
        shell.execute("PRAGMA user_version = 0")
    assert state(tmp_path / "b.db") == life.store.read(tree_version)


def test_a_file_and_a_log_that_were_copied_at_different_moments_are_refused_and_left_as_they_are(
    life: Life, tmp_path: Path
) -> None:
    life.begin()
    life.change()
    shutil.copy(life.file, tmp_path / "b.db")
    life.store.checkpoint()
    life.change()
    shutil.copy(log_path(life.file), tmp_path / "b.db-wal")
    before = (tmp_path / "b.db").read_bytes(), (tmp_path / "b.db-wal").read_bytes()
    for _ in range(2):
        with pytest.raises(StoreUnusable, match=r"b\.db-wal that is not its own"):
            open_store(tmp_path / "b.db")
    assert ((tmp_path / "b.db").read_bytes(), (tmp_path / "b.db-wal").read_bytes()) == before


@pytest.mark.slow("takes a tenth of a second")
def test_a_log_that_another_file_has_left_is_refused(life: Life, tmp_path: Path) -> None:
    life.begin()
    life.change()
    (tmp_path / "other").mkdir()
    other = Life(tmp_path / "other")
    other.begin()
    copy_both(other.file, tmp_path / "b.db")
    shutil.copy(life.file, tmp_path / "b.db")
    with pytest.raises(StoreUnusable, match=r"b\.db-wal that is not its own"):
        open_store(tmp_path / "b.db")
    assert other.host is not None
    other.host.release()
    other.store.close()


@pytest.mark.slow("takes a tenth of a second")
def test_a_backup_that_is_put_beside_the_log_of_the_lost_file_is_refused_until_that_is_gone(
    life: Life, tmp_path: Path
) -> None:
    file = tmp_path / "b.db"
    life.begin()
    copy_both(life.file, file)
    life.change()
    back_up(life.store, tmp_path / "backup.db", check)
    (tmp_path / "backup.db").rename(file)
    with pytest.raises(StoreUnusable, match=r"b\.db-wal that is not its own.*Move the log away"):
        open_store(file)
    log_path(file).unlink()
    assert state(file) == life.store.read(tree_version)


@pytest.mark.thorough("a second refusal of a copy")
def test_a_copy_that_went_on_while_a_host_began_and_the_file_grew_is_refused(life: Life, tmp_path: Path) -> None:
    before = life.file.read_bytes()
    life.begin()
    life.store.write(lambda tx: sql(tx, BIG.format(1, LOG_PAGES * 4096)))
    (tmp_path / "b.db").write_bytes(before[:4096] + life.file.read_bytes()[4096:])
    with pytest.raises(StoreUnusable, match="was copied while a host began"):
        open_store(tmp_path / "b.db")


@pytest.mark.slow("takes a tenth of a second")
def test_a_file_whose_log_another_program_has_moved_is_whole_wherever_in_a_move_its_host_was_killed(life: Life) -> None:
    life.begin()
    life.change()
    begun = len(life.acknowledged)
    life.store.checkpoint()
    for number in range(begun, len(life.acknowledged)):
        copy = life.copies / str(number)
        with closing(sqlite3.connect(copy)) as shell:
            shell.execute("SELECT * FROM tree").fetchall()
        assert not log_path(copy).exists()
        assert state(copy) == life.acknowledged[number]
    assert lock_path(life.file).read_text() == ""


@pytest.mark.slow("takes a tenth of a second")
def test_a_host_marks_its_file_again_when_another_program_has_moved_the_log(life: Life, tmp_path: Path) -> None:
    life.begin()
    life.change()
    with closing(sqlite3.connect(life.file)) as shell:
        shell.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    life.change()
    shutil.copy(life.file, tmp_path / "b.db")
    assert state(tmp_path / "b.db") is None


@pytest.mark.slow("takes a tenth of a second")
def test_the_log_of_a_host_is_begun_anew_again_and_again(life: Life) -> None:
    life.store._writer.connection.set_trace_callback(None)
    life.begin()
    for number in range(1, 41):
        life.store.write(lambda tx, number=number: sql(tx, BIG.format(number, LOG_PAGES * 400)))  # type: ignore[misc]
    assert log_path(life.file).stat().st_size < 1.5 * LOG_PAGES * 4120
    life.change()


@pytest.mark.slow("takes a tenth of a second")
def test_a_checkpoint_waits_for_no_reader_and_brings_the_file_up_to_date(life: Life) -> None:
    life.begin()
    with reading(life.file) as reader:
        life.change()
        life.store.checkpoint()
        assert reader.execute("SELECT version FROM tree").fetchone() == (life.store.read(tree_version) - 1,)
    life.store.checkpoint()
    with closing(sqlite3.connect(f"{life.file.as_uri()}?mode=ro&immutable=1", uri=True)) as alone:
        assert alone.execute("SELECT version FROM tree").fetchone() == (life.store.read(tree_version),)


def test_a_backup_that_is_made_while_the_log_is_moved_is_whole(life: Life, tmp_path: Path) -> None:
    life.begin()
    life.change()
    life.store._writer.connection.execute("PRAGMA user_version = 7")
    assert back_up(life.store, tmp_path / "b.db", check) == []
    assert state(tmp_path / "b.db") == life.store.read(tree_version)


@pytest.mark.parametrize("mark", [1, 2**30, 2**31 - 2, 2**31 - 1])
def test_marks_follow_one_another_in_the_room_that_sqlite_has_for_them(mark: int) -> None:
    then = following(mark)
    assert then == following(-mark)
    assert 0 < then < 2**31
    assert belongs(mark, then)
    assert not belongs(then, mark)
    assert not belongs(then, -mark)
    assert 0 < following(0) <= 2**30
