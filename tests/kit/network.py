"""A network on loopback between programs and a PostgreSQL server. Its subclasses do things to the lines."""

import contextlib
import socket
import threading
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.kit.databases import DEADLINE

CHUNK = 65_536
"""Bytes that are read at once."""


def with_settings(url: str, **changes: str) -> str:
    """A URL for the same server with other settings. The database stands in its path, where some libraries want it."""
    settings = {key: quote(str(value), safe="") for key, value in {**conninfo_to_dict(url), **changes}.items()}
    name = settings.pop("dbname", "")
    return f"postgresql:///{name}?" + "&".join(f"{key}={value}" for key, value in settings.items())


class Network:
    """Takes the lines of clients. Each has a thread, which carries what is sent, and which `close` ends."""

    def __init__(self, url: str) -> None:
        """Stand before the server of a URL, which must run at this moment."""
        with psycopg.connect(url) as connection:
            self._host, self._port = connection.info.host, connection.info.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.url = with_settings(url, host=host, port=str(port), sslmode="disable", gssencmode="disable")
        """How the server is reached through this network."""
        self._ends: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._threads = [threading.Thread(target=self._accept, name="network", daemon=True)]
        self._threads[0].start()

    def carry(self, client: socket.socket) -> None:
        """Carry the line of a client to its end. `OSError` ends the line."""
        raise NotImplementedError  # a test's class, whose subclasses each override it

    def connect(self) -> socket.socket:
        """A line to the server."""
        local = self._host.startswith("/")
        server = self._kept(socket.socket(socket.AF_UNIX if local else socket.AF_INET))
        try:
            server.connect(f"{self._host}/.s.PGSQL.{self._port}" if local else (self._host, self._port))
        except OSError:
            self.end(server)
            raise
        return server

    def cut(self) -> None:
        """End every line at once; new ones can be made."""
        with self._lock:
            for end in self._ends:
                shut(end)

    def end(self, end: socket.socket) -> None:
        """End one end of a line."""
        shut(end)
        with self._lock:
            self._ends.discard(end)
        end.close()

    def close(self) -> None:
        """Cut every line, and take no more."""
        with self._lock:
            self._closed = True
        shut(self._listener)
        self._threads[0].join(DEADLINE)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(DEADLINE)
        for end in tuple(self._ends):
            self.end(end)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client = self._kept(self._listener.accept()[0])
                self._threads.append(threading.Thread(target=self._try, args=(client,), name="network", daemon=True))
                self._threads[-1].start()

    def _try(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.carry(client)
        self.end(client)

    def _kept(self, end: socket.socket) -> socket.socket:
        """The end of a line, which `cut` ends, too. Raises `OSError` when the network is closed."""
        with self._lock:
            if not self._closed:
                self._ends.add(end)
                return end
        end.close()
        raise OSError("the network is closed")


def shut(end: socket.socket) -> None:
    """End what is read from a socket, and written to it, whoever is at it."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
