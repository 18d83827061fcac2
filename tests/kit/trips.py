"""A network between a program and a PostgreSQL server that counts how often the program waits for the server."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue

from tests.kit.network import CHUNK, Network, shut

_HEADER = 5
"""Bytes before the body of a message: its kind, and its length with those four."""

_AWAITED = (b"Z", b"G")
"""The server's messages for which a client waits: it is ready for the next query, or for the rows of a COPY."""

_UNAWAITED = b"Q\0\0\0\x0dROLLBACK\0"
"""A client's message behind what it has read, for whose answer it does not wait."""


class Trips(Network):
    """Counts the round trips of each line, and delays what is sent in either direction."""

    def __init__(self, url: str, delay: float = 0.0) -> None:
        """Stand before the server of a URL; ``delay`` is in seconds, for each direction."""
        self._delay = delay
        self.lines: list[int] = []
        """The round trips of each line, in the order in which the lines were made."""
        self._unawaited: set[int] = set()
        super().__init__(url)

    def carry(self, client: socket.socket) -> None:
        """Hand on what comes on a line, in both directions, until one end is closed."""
        server = self.connect()
        line = len(self.lines)
        self.lines.append(0)
        back = threading.Thread(target=self._answer, args=(server, client, line), name="network", daemon=True)
        back.start()
        with contextlib.suppress(OSError), self._delayed(server) as send:
            while said := client.recv(CHUNK):
                if said == _UNAWAITED:
                    self._unawaited.add(line)
                send(said)
        shut(client)
        shut(server)
        back.join()
        self.end(server)

    def _answer(self, server: socket.socket, client: socket.socket, line: int) -> None:
        unread = b""
        with contextlib.suppress(OSError), self._delayed(client) as send:
            while said := server.recv(CHUNK):
                unread += said
                while len(unread) >= _HEADER and len(unread) > (length := int.from_bytes(unread[1:_HEADER])):
                    self._count(line, unread[:1])
                    unread = unread[length + 1 :]
                send(said)
        shut(server)
        shut(client)

    def _count(self, line: int, kind: bytes) -> None:
        if kind in _AWAITED:
            self.lines[line] += line not in self._unawaited
            self._unawaited.discard(line)

    @contextlib.contextmanager
    def _delayed(self, to: socket.socket) -> Iterator[Callable[[bytes], object]]:
        """What sends to one end: each piece so much later than it came, however close they follow one another."""
        if not self._delay:
            yield to.sendall
            return
        pieces: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        sending = threading.Thread(target=self._send_late, args=(pieces, to), name="network", daemon=True)
        sending.start()
        try:
            yield lambda piece: pieces.put((time.monotonic() + self._delay, piece))
        finally:
            pieces.put((0.0, b""))
            sending.join()

    def _send_late(self, pieces: "SimpleQueue[tuple[float, bytes]]", to: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (piece := pieces.get())[1]:
                time.sleep(max(0.0, piece[0] - time.monotonic()))
                to.sendall(piece[1])
