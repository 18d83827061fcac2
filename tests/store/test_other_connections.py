"""Other processes write to a host's file, move its log and hold readers: no unit is refused, and nothing is lost."""

import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.store import Transaction, open_store
from ikigai_actors.store.hosts.host import new_host, take_database
from ikigai_actors.store.journal import Committed, Journal
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.sqlite.file import lock_path, log_path
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.store.sqlite.wal import LOG_PAGES
from tests.kit.databases import sql, tree_change, tree_version
from tests.kit.journals import Answers, Task
from tests.kit.programs import programs, run_programs
from tests.kit.sqlite_process import SQLiteProcess
from tests.store.test_wal import state

HOST = "host 1"

LONG = (
    "INSERT OR REPLACE INTO documents (path, version, body, created_at) "
    f"VALUES ('p', 1, printf('%.{LOG_PAGES * 4096}c', 'x'), 1)"
)
"""Makes the log so long that it is moved behind this commit."""

CHECKPOINTS = ("PASSIVE", "FULL", "RESTART", "TRUNCATE")


class HostedFile:
    """A file with a host, whose journal commits one unit at a time, and two other processes that have it open."""

    def __init__(self, place: Path) -> None:
        self.place, self.file = place, place / "a.db"
        with closing(open_store(self.file)) as new:
            ensure_schema(new)
        self.meanwhile: deque[str] = deque()
        """What others do, one act before each next statement of the host's writing connection."""
        self._looks = 0
        with ExitStack() as made:
            self.store = SQLiteStore(self.file, patience=0.0)
            made.callback(self.store.close)
            made.callback(take_database(new_host(self.store, HOST, SystemClock())).release)
            self.journal = Journal(self.store, HOST, SystemClock(), patience=0.0)
            self.store._writer.connection.set_trace_callback(self._interfere)
            self.reader, self.other = SQLiteProcess(self.file), SQLiteProcess(self.file)
            made.callback(self.reader.end)
            made.callback(self.other.end)
            self.close = made.pop_all().close

    def _interfere(self, statement: str) -> None:
        if self.meanwhile:
            self.act(self.meanwhile.popleft())
        if statement == "BEGIN IMMEDIATE":  # who finds another one writing waits for it
            self.act("end writing")

    def act(self, act: str) -> None:
        """Have the other processes do something."""
        match act:
            case "begin to read":
                self.reader.run("BEGIN")
                self.reader.run("SELECT version FROM tree")
            case "end reading":
                self.reader.run("ROLLBACK")
            case "begin to move":
                self.other.run("move")
            case "end moving":
                self.other.run("end move")
            case "begin to write":
                self.other.run("BEGIN IMMEDIATE")
            case "end writing":
                self.other.run("ROLLBACK")
            case "":
                return
            case _:
                self.other.run(act)

    def commit(self, statement: str | None = None) -> None:
        """Commit a unit of the host; whatever others do, it is committed at the first try."""
        before = self.store.read(tree_version)

        def write(tx: Transaction) -> None:
            tree_change(tx)
            if statement is not None:
                sql(tx, statement)

        answers = Answers()
        self.journal.submit(Task(write), answers.to("it"))
        self.journal.commit_pending()
        assert answers["it"] == Committed()
        assert self.journal.statistics().retries == 0
        assert self.store.read(tree_version) == before + 1
        self.look()

    def look(self) -> None:
        """Check what a host leaves that is killed now: with its log the file opens with all that was committed."""
        self._looks += 1
        copy = self.place / f"copy {self._looks}"
        shutil.copy(self.file, copy)
        shutil.copy(log_path(self.file), log_path(copy))
        shutil.copy(lock_path(self.file), lock_path(copy))
        committed = self.store.read(tree_version)
        assert state(copy) == committed
        assert state(copy) == committed  # by itself, since the last one who closed it has moved the log


ACTS = st.sampled_from(
    (
        "",
        "begin to read",
        "end reading",
        "begin to move",
        "end moving",
        "begin to write",
        "end writing",
        "UPDATE tree SET version = version",
        *(f"PRAGMA wal_checkpoint({kind})" for kind in CHECKPOINTS),
    )
)


class OtherConnections(RuleBasedStateMachine):
    """Programs of a host and of others that use its file."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self.hosted = HostedFile(Path(self._directory.name))

    @rule(meanwhile=st.lists(ACTS, max_size=8), long=st.booleans())
    def commit(self, meanwhile: list[str], long: bool) -> None:
        """The host commits, while others act before each of its statements."""
        self.hosted.meanwhile.extend(meanwhile)
        self.hosted.commit(LONG if long else None)

    @rule(act=ACTS)
    def act(self, act: str) -> None:
        """Another process does something."""
        self.hosted.act(act)
        self.hosted.look()

    @rule(meanwhile=st.lists(ACTS, max_size=6))
    def idle(self, meanwhile: list[str]) -> None:
        """The host has nothing to do, and brings its file up to date."""
        self.hosted.meanwhile.extend(meanwhile)
        self.hosted.store.checkpoint()
        self.hosted.look()

    def teardown(self) -> None:
        """Close all: the file alone has everything then."""
        with self._directory:
            self.hosted.meanwhile.clear()
            for act in ("end reading", "end moving", "end writing"):
                self.hosted.act(act)
            self.hosted.commit()
            committed = self.hosted.store.read(tree_version)
            self.hosted.close()
            assert not log_path(self.hosted.file).exists()
            assert state(self.hosted.file) == committed


@pytest.mark.thorough("programs of other connections by chance; every run has one of each")
@programs(8, 300)
def test_whatever_others_do_with_a_hosts_file_no_unit_is_refused_and_nothing_is_lost(examples: int) -> None:
    run_programs(OtherConnections, examples, 12)


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[HostedFile]:
    """A file with a host, and two other processes that have it open."""
    hosted = HostedFile(tmp_path)
    yield hosted
    hosted.close()


@pytest.mark.slow("takes a tenth of a second")
def test_a_host_commits_while_another_process_moves_the_log_and_moves_it_itself_later(hosted: HostedFile) -> None:
    hosted.commit()
    hosted.act("begin to move")
    hosted.commit(LONG)
    hosted.commit(LONG)
    hosted.act("end moving")
    hosted.commit()
    hosted.commit(LONG)
    hosted.commit(LONG)
    assert log_path(hosted.file).stat().st_size < 5 * LOG_PAGES * 4120


@pytest.mark.slow("takes a tenth of a second")
def test_a_host_ends_no_move_by_a_mark_that_another_process_may_still_overtake(hosted: HostedFile) -> None:
    """The other one moves the mark of the move into the file, after the host has looked whether it is there."""
    hosted.commit()
    hosted.act("begin to read")
    hosted.commit()

    def overtake(statement: str = "PRAGMA user_version = -") -> None:
        if statement.startswith("PRAGMA user_version = -"):
            hosted.act("end reading")
            hosted.act("PRAGMA wal_checkpoint(PASSIVE)")

    hosted.store._writer.connection.set_trace_callback(overtake)
    hosted.store.checkpoint()
    hosted.look()
    overtake()
    hosted.look()
    hosted.commit()


def test_a_host_that_cannot_end_a_move_keeps_its_note_until_it_can(hosted: HostedFile) -> None:
    hosted.meanwhile.extend(("", "", "PRAGMA wal_checkpoint(TRUNCATE)", "begin to write"))
    hosted.store.checkpoint()
    hosted.store.checkpoint()
    hosted.look()
