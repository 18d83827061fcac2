"""Hosts that a test runs beside one another."""

import os
from collections.abc import Callable, Sequence
from itertools import count

from ikigai_actors.actors.clock import Clock, SystemClock
from ikigai_actors.records.agents.registry import make_root
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.hosts.host import LEASE, Host, new_host, take_database
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.migrations import MIGRATIONS, Migration, ensure_schema
from tests.kit.databases import sql
from tests.kit.trees import add


class Hosts:
    """Takes databases when it is called, each with a store of its own."""

    def __init__(self) -> None:
        self._taken: list[tuple[Host, Store]] = []
        self._numbers = count(1)

    def __call__(
        self,
        url: str | os.PathLike[str],
        clock: Clock | None = None,
        lease: float = LEASE,
        name: str | None = None,
        on_wait: Callable[[HostRecord], object] = lambda owner: None,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> Host:
        """Open a database as its next host; raises what `take_database` raises."""
        store = open_store(url)
        try:
            ensure_schema(store, migrations)
            made = new_host(
                store,
                f"host {next(self._numbers)}",
                clock or SystemClock(),
                lease,
                name=name,
                on_wait=on_wait,
                migrations=migrations,
            )
            host = take_database(made)
        except BaseException:
            store.close()
            raise
        self._taken.append((host, store))
        return host

    def kill(self, host: Host) -> None:
        """Let the server lose every connection of a host, as when its process is killed."""
        [store] = [store for taken, store in self._taken if taken is host]
        store.abandon("killed, as planned")

    def close(self) -> None:
        """Give every database back."""
        for host, store in self._taken:
            host.release()
            store.close()


def owners(store: Store) -> list[tuple[object, ...]]:
    """Every host that there ever was: id, epoch, and whether it is the owner."""
    rows = store.read(lambda tx: sql(tx, "SELECT id, epoch, ended_at FROM hosts ORDER BY epoch"))
    return [(row[0], row[1], row[2] is None) for row in rows]


def plant(store: Store, host: str) -> None:
    """Agent 0 and two children, of which one is dead."""
    store.write(lambda tx: make_root(tx, "root", 1))
    store.write(lambda tx: add(tx, "a", "root"))
    store.write(lambda tx: add(tx, "dead", "root"))
    store.write(lambda tx: tx.run("bury", uuids=["dead"], cause="killed", sender=None, reason="test", now=2))
