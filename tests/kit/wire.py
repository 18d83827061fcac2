"""A network between a store and its PostgreSQL server that can be cut at the worst moment, or swallow everything."""

import contextlib
import socket
import threading
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.kit.databases import DEADLINE


def with_settings(url: str, **changes: str) -> str:
    """A URL for the same server with other settings."""
    settings = {**conninfo_to_dict(url), **changes}
    return "postgresql:///?" + "&".join(f"{key}={quote(str(value), safe='')}" for key, value in settings.items())


class Wire:
    """A line to the server that is cut at a COMMIT: before the server hears it, or before its answer is heard."""

    def __init__(self, url: str, *, heard: bool, at: bytes = b"COMMIT\0") -> None:
        """Listen; `url` is then the way through this wire. Heard: the server hears the COMMIT that is cut off.

        ``at``: what it is cut at instead.
        """
        with psycopg.connect(url) as connection:
            self._host, self._port = connection.info.host, connection.info.port
        self._heard, self._at = heard, at
        self.armed = threading.Event()
        """Set from where on a COMMIT is cut off."""
        self.swallows = threading.Event()
        """Set from where on everything is taken, in both directions, and nothing is passed on."""
        self._swallowing = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.url = with_settings(url, host=host, port=str(port), sslmode="disable", gssencmode="disable")
        self._clients: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def swallows_at_commit(self) -> None:
        """Pass the next COMMIT of a journal on, and then nothing more. Renewals of the lease are let through."""
        self._swallowing = True

    def close(self) -> None:
        """Cut every connection and take no more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in self._clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(DEADLINE)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._clients.append(client)
            self._threads.append(threading.Thread(target=self._carry, args=(client,), daemon=True))
            self._threads[-1].start()

    def _server(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{self._host}/.s.PGSQL.{self._port}")
        return server

    def _carry(self, client: socket.socket) -> None:
        with client, self._server() as server:
            back = threading.Thread(target=self._answer, args=(server, client), daemon=True)
            back.start()
            journal = False
            while data := client.recv(65536):
                journal = journal or b"SET batch" in data
                if self.swallows.is_set():
                    continue
                if self._swallowing and journal and self._at in data:
                    self.swallows.set()
                elif self._at in data and self.armed.is_set():
                    client.shutdown(socket.SHUT_RDWR)
                    if self._heard:
                        server.sendall(data)
                    break
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)  # the server reads what was sent, then ends
            back.join(DEADLINE)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        while data := server.recv(65536):
            if self.swallows.is_set():
                continue
            try:
                client.sendall(data)
            except OSError:
                continue
