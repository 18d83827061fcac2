"""A host whose database becomes an older copy of itself, as when a standby without the latest commits takes over."""

import re
import threading
from contextlib import closing
from urllib.parse import unquote

import pytest

from ikigai_actors import ActorSystem, OfflineProvider, StoreTrouble, SystemClosed
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.copy import copy_database
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, Admin, eventually, sql

LEASE = 2.0
"""Seconds: the copy still believes its host for so long."""


def exchange(admin: Admin, url: str, other: str) -> None:
    """Let two databases of the tests, each a schema, exchange their names."""
    names = [re.findall(r"search_path=(\w+)", unquote(url))[0] for url in (url, other)]
    with admin.transaction():
        for old, new in ((names[0], "exchanged"), (names[1], names[0]), ("exchanged", names[1])):
            admin.execute(f"ALTER SCHEMA {old} RENAME TO {new}".encode())


def written(store: Store) -> list[tuple[object, ...]]:
    """Every message that there is."""
    return sorted(store.read(lambda tx: sql(tx, "SELECT agent_uuid, id, kind, content FROM messages")))


def beats(store: Store) -> int:
    """How often the latest host has renewed its lease."""
    [(count,)] = store.read(lambda tx: sql(tx, "SELECT MAX(beat) FROM hosts"))
    assert isinstance(count, int)
    return count


@pytest.mark.empty
@pytest.mark.thorough("a second host on a copy; every run has the idle one")
def test_a_host_whose_database_went_back_to_an_older_copy_ends_and_writes_nothing_there(
    new_postgres: NewDatabase, postgres_admin: Admin
) -> None:
    url, copy_url = new_postgres(), new_postgres()
    with closing(open_store(url)) as original, closing(open_store(copy_url)) as copy:
        system = ActorSystem.open(url, OfflineProvider(), lease=LEASE)
        ends = threading.Event()
        system.subscribe(lambda event: ends.set() if isinstance(event, StoreTrouble) and event.final else None)
        child = system.root.fork(name="child")
        child.prompt("one").get(timeout=DEADLINE)
        copy_database(original, copy)
        then = written(copy)
        child.prompt("two").get(timeout=DEADLINE)
        exchange(postgres_admin, url, copy_url)
        with pytest.raises(SystemClosed, match="has lost what this host has written"):
            child.prompt("three").get(timeout=DEADLINE)
        assert ends.wait(DEADLINE)
        system.close()
        assert written(original) == then  # by now the name leads to the copy
        assert check(original) == []
        eventually(lambda: not original.read(lambda tx: tx.run("open_hosts")), "the end of the host's row")
        with ActorSystem.open(url, OfflineProvider()) as again:
            assert again.agent("child").prompt("two, again").get(timeout=DEADLINE).text
        assert check(original) == []


def test_an_idle_host_whose_database_went_back_to_an_older_copy_ends(
    new_postgres: NewDatabase,
) -> None:
    url = new_postgres()
    with closing(open_store(url)) as store:
        system = ActorSystem.open(url, OfflineProvider(), lease=LEASE)
        trouble: list[StoreTrouble] = []
        system.subscribe(lambda event: trouble.append(event) if isinstance(event, StoreTrouble) else None)
        eventually(lambda: beats(store) > 2, "renewals that the copy does not know")
        store.write(lambda tx: sql(tx, "UPDATE hosts SET beat = 0"))
        eventually(lambda: any(event.final for event in trouble), "the end")
        assert "has lost what this host has written: it knows 0 of" in str(trouble[-1].reason)
        system.close()
