"""A network between a program and a PostgreSQL server that counts how often the program waits for the server."""

import contextlib
import socket
import threading
import time

from tests.kit.network import CHUNK, Network, shut

_HEADER = 5
"""Bytes before the body of a message: its kind, and its length with those four."""

_AWAITED = (b"Z", b"G")
"""The server's messages for which a client waits: it is ready for the next query, or for the rows of a COPY."""


class Trips(Network):
    """Counts the round trips of each line, and delays what is sent in either direction."""

    def __init__(self, url: str, delay: float = 0.0) -> None:
        """Stand before the server of a URL; ``delay`` is in seconds, for each direction."""
        self._delay = delay
        self.lines: list[int] = []
        """The round trips of each line, in the order in which the lines were made."""
        super().__init__(url)

    def carry(self, client: socket.socket) -> None:
        """Hand on what comes on a line, in both directions, until one end is closed."""
        server = self.connect()
        line = len(self.lines)
        self.lines.append(0)
        back = threading.Thread(target=self._answer, args=(server, client, line), name="network", daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            while said := client.recv(CHUNK):
                self._wait()
                server.sendall(said)
        shut(client)
        shut(server)
        back.join()
        self.end(server)

    def _answer(self, server: socket.socket, client: socket.socket, line: int) -> None:
        unread = b""
        with contextlib.suppress(OSError):
            while said := server.recv(CHUNK):
                unread += said
                while len(unread) >= _HEADER and len(unread) > (length := int.from_bytes(unread[1:_HEADER])):
                    self.lines[line] += unread[:1] in _AWAITED
                    unread = unread[length + 1 :]
                self._wait()
                client.sendall(said)
        shut(server)
        shut(client)

    def _wait(self) -> None:
        if self._delay:
            time.sleep(self._delay)
