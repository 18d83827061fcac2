"""The journal when nothing is written for a moment: it brings the database's file up to date, once."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.store.journal import IDLE, Journal
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.testing import Simulation, simulated
from tests.kit.databases import DEADLINE, eventually
from tests.kit.faults import FaultyStore
from tests.kit.trees import HOST, append, plant


@pytest.fixture
def world() -> Iterator[Simulation]:
    """A simulation whose time costs nothing."""
    with simulated() as world:
        world.open()
        yield world


@pytest.fixture
def store(world: Simulation) -> Iterator[FaultyStore]:
    """A store that counts how often it was brought up to date."""
    with closing(SQLiteStore()) as inner:
        ensure_schema(inner)
        plant(inner, a="root")
        yield FaultyStore(inner)


@pytest.fixture
def journal(world: Simulation, store: FaultyStore) -> Iterator[Journal]:
    """A journal on that store, which runs in the simulation."""
    journal = Journal(store, HOST, world.clock, threads=current_threads())
    journal.start()
    yield journal
    journal.close()


def test_a_file_is_brought_up_to_date_once_when_nothing_was_written_for_a_moment(
    world: Simulation, store: FaultyStore, journal: Journal
) -> None:
    for number in (1, 2, 3):
        journal.perform(append("a", number))
        world.process.threads.sleep(IDLE / 2)
    assert store.checkpoints == 0
    world.process.threads.sleep(IDLE)
    assert store.checkpoints == 1
    world.process.threads.sleep(100 * IDLE)
    assert store.checkpoints == 1
    journal.perform(append("a", 4))
    world.process.threads.sleep(2 * IDLE)
    assert store.checkpoints == 2


def test_what_others_write_is_a_reason_too(world: Simulation, store: FaultyStore, journal: Journal) -> None:
    world.process.threads.sleep(2 * IDLE)
    before = store.checkpoints
    for _ in range(3):
        journal.note_others()
        world.process.threads.sleep(IDLE / 10)
    assert store.checkpoints == before
    world.process.threads.sleep(2 * IDLE)
    assert store.checkpoints == before + 1


def mails_in_a_copy(file: Path, copy: Path) -> int:
    """How many mails there are in the file alone, without its log."""
    shutil.copy(file, copy)
    with closing(sqlite3.connect(copy)) as alone:
        return int(alone.execute("SELECT COUNT(*) FROM mail").fetchone()[0])


@pytest.mark.slow("takes a second")
def test_the_file_alone_has_what_was_written_before_the_host_was_idle(tmp_path: Path) -> None:
    file, copy = tmp_path / "a.db", tmp_path / "copy.db"
    with ActorSystem.open(file, OfflineProvider()) as system:
        system.root.prompt("tea").get(timeout=DEADLINE)
        system.root.send(system.root, "from the host")
        eventually(lambda: mails_in_a_copy(file, copy) == 1, "the host's mail in the file")
        with AttachedSystem.open(file) as other:
            other.send(system.root.uuid, "from a client")
        eventually(lambda: mails_in_a_copy(file, copy) == 2, "the client's mail in the file")
