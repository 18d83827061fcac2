"""Poolers before a PostgreSQL server: a client has a server process for one transaction only, or for one statement."""

import contextlib
import re
import selectors
import socket
import struct
import threading
from collections.abc import Callable

from tests.kit.network import CHUNK, Network, shut

_KEY = re.compile(rb"K\0\0\0\x0c.{8}", re.DOTALL)
_OWN_KEY = b"K\0\0\0\x0c" + bytes(8)
"""By which a client cancels statements: a pooler has its own, and so it names another process than the server's."""
_TERMINATE = b"X"
_READY = ord("Z")
_IDLE = b"I"
_REASON = b"SFATAL\0VFATAL\0C08P01\0Mtransaction blocks not allowed in statement pooling mode\0\0"
_REFUSAL = b"E" + struct.pack("!i", len(_REASON) + 4) + _REASON


class Pooler(Network):
    """Passes transactions on, as PgBouncer does with pool_mode = transaction. For a server that trusts its users."""

    def __init__(self, url: str) -> None:
        """Listen; `url` is then the way through it."""
        self._idle: list[socket.socket] = []
        self._idle_lock = threading.Lock()
        super().__init__(url)

    def carry(self, client: socket.socket) -> None:
        """Give a client a server process for each transaction."""
        start = _startup(client)
        server, greeting = self._greeted(start)
        self._give(server)
        client.sendall(_KEY.sub(_OWN_KEY, greeting))
        while (data := client.recv(CHUNK)) and data[:1] != _TERMINATE:
            with self._idle_lock:
                taken = self._idle.pop() if self._idle else None  # the one that was used last, as PgBouncer does
            server = taken or self._greeted(start)[0]
            server.sendall(data)
            self.carry_transaction(client, server)

    def carry_transaction(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what is said, to the end of a transaction; then give the server back."""
        _carry(client, server, self._give)

    def _give(self, server: socket.socket) -> None:
        with self._idle_lock:
            self._idle.append(server)

    def _greeted(self, start: bytes) -> tuple[socket.socket, bytes]:
        """A server process, and what it says at first, up to that it is ready."""
        server = self.connect()
        server.sendall(start)
        said = b""
        while not _is_idle(said):
            said += server.recv(CHUNK)
        return server, said


class StatementPooler(Pooler):
    """Passes single statements on, and refuses transactions, as PgBouncer does with pool_mode = statement."""

    def carry_transaction(self, client: socket.socket, server: socket.socket) -> None:
        said = _answered(client, server)
        if not _is_idle(said):
            client.sendall(_REFUSAL)
            raise OSError("a transaction was begun")
        self._give(server)
        client.sendall(said)


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
                if not (data := source.recv(CHUNK)):
                    raise OSError("an end is gone")
                if source is server:
                    said = _left(said + data)
                    if _is_idle(said):
                        give(server)
                other.sendall(data)


def _answered(client: socket.socket, server: socket.socket) -> bytes:
    """What a server says, while a client goes on to send, up to that it is ready."""
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ)
        selector.register(server, selectors.EVENT_READ)
        while not _is_ready(said):
            for key, _ in selector.select():
                if key.fileobj is server:
                    said += server.recv(CHUNK)
                else:
                    server.sendall(client.recv(CHUNK))
    return said


def _left(said: bytes) -> bytes:
    """What a server has said, from its last message on."""
    while len(said) >= 5 and len(said) > (length := 1 + struct.unpack("!i", said[1:5])[0]):
        said = said[length:]
    return said


def _is_idle(said: bytes) -> bool:
    """Whether the last message of a server is that it is ready, outside of a transaction."""
    return _is_ready(said) and _left(said)[5:] == _IDLE


def _is_ready(said: bytes) -> bool:
    """Whether the last message of a server is that it is ready, within a transaction or outside."""
    last = _left(said)
    return len(last) == 6 and last[0] == _READY


class SmallPool(Pooler):
    """Gives each client a server process for as long as it stays, as PgBouncer does with pool_mode = session.

    It has few, and lets everybody in: who comes when all are taken waits with the first statement.
    """

    def __init__(self, url: str, size: int) -> None:
        """Listen, with so many server processes."""
        self._places = threading.BoundedSemaphore(size)
        super().__init__(url)

    def carry(self, client: socket.socket) -> None:
        """Give a client a server process, once it says something and one is free."""
        start = _startup(client)
        server, greeting = self._greeted(start)
        shut(server)
        self.end(server)
        client.sendall(_KEY.sub(_OWN_KEY, greeting))
        if (data := client.recv(CHUNK)) and data[:1] != _TERMINATE:
            while not self._places.acquire(timeout=0.05):
                with contextlib.suppress(BlockingIOError):
                    if not client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):  # it waits no more
                        return
            try:
                self._stay(client, start, data)
            finally:
                self._places.release()

    def _stay(self, client: socket.socket, start: bytes, data: bytes) -> None:
        server, _ = self._greeted(start)
        back = threading.Thread(target=_hand_on, args=(server, client), name="network", daemon=True)
        back.start()
        server.sendall(data)
        _hand_on(client, server)
        back.join()
        self.end(server)


def _hand_on(source: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while said := source.recv(CHUNK):
            other.sendall(said)
    shut(source)
    shut(other)
