"""A pooler before a PostgreSQL server, in transaction mode: a client has a server process for one transaction only."""

import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Callable

import psycopg

from tests.kit.databases import DEADLINE
from tests.kit.wire import with_settings

_TERMINATE = b"X"
_READY = ord("Z")
_IDLE = b"I"


class Pooler:
    """Passes transactions on, as PgBouncer does with pool_mode = transaction. For a server that trusts its users."""

    def __init__(self, url: str) -> None:
        """Listen; `url` is then the way through it."""
        with psycopg.connect(url) as connection:
            self._host, self._port = connection.info.host, connection.info.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.url = with_settings(url, host=host, port=str(port), sslmode="disable", gssencmode="disable")
        self._idle: list[socket.socket] = []
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Cut every connection, and take no more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(DEADLINE)
        for one in self._open:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            self._threads.append(threading.Thread(target=self._try, args=(client,), daemon=True))
            self._threads[-1].start()

    def _try(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self._serve(client)
            client.shutdown(socket.SHUT_RDWR)

    def _serve(self, client: socket.socket) -> None:
        start = _startup(client)
        server, greeting = self._connect(start)
        self._give(server)
        client.sendall(greeting)
        while (data := client.recv(65536)) and data[:1] != _TERMINATE:
            with self._lock:
                taken = self._idle.pop() if self._idle else None  # the one that was used last, as PgBouncer does
            server = taken or self._connect(start)[0]
            server.sendall(data)
            _carry(client, server, self._give)

    def _give(self, server: socket.socket) -> None:
        with self._lock:
            self._idle.append(server)

    def _connect(self, start: bytes) -> tuple[socket.socket, bytes]:
        """A server process, and what it says at first, up to that it is ready."""
        local = self._host.startswith("/")
        server = socket.socket(socket.AF_UNIX if local else socket.AF_INET)
        server.connect(f"{self._host}/.s.PGSQL.{self._port}" if local else (self._host, self._port))
        self._open.append(server)
        server.sendall(start)
        said = b""
        while not _is_idle(said):
            said += server.recv(65536)
        return server, said


def _startup(client: socket.socket) -> bytes:
    """The first message of a client."""
    [length] = struct.unpack("!i", _exactly(client, 4))
    return struct.pack("!i", length) + _exactly(client, length - 4)


def _exactly(sender: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        if not (more := sender.recv(length - len(data))):
            raise OSError("the other end is gone")
        data += more
    return data


def _carry(client: socket.socket, server: socket.socket, give: Callable[[socket.socket], object]) -> None:
    """Pass everything on in both directions, to the end of the transaction; then give the server back.

    That comes before the client hears of the end: the next transaction, whoever begins it, finds the server idle.
    """
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, server)
        selector.register(server, selectors.EVENT_READ, client)
        while not _is_idle(said):
            for key, _ in selector.select():
                source, other = key.fileobj, key.data
                assert isinstance(source, socket.socket)
                if not (data := source.recv(65536)):
                    raise OSError("an end is gone")
                if source is server:
                    said = _left(said + data)
                    if _is_idle(said):
                        give(server)
                other.sendall(data)


def _left(said: bytes) -> bytes:
    """What a server has said, from its last message on."""
    while len(said) >= 5 and len(said) > (length := 1 + struct.unpack("!i", said[1:5])[0]):
        said = said[length:]
    return said


def _is_idle(said: bytes) -> bool:
    """Whether the last message of a server is that it is ready, outside of a transaction."""
    last = _left(said)
    return len(last) == 6 and last[0] == _READY and last[5:] == _IDLE
