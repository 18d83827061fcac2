"""A network between a store and its PostgreSQL server that can be cut at the worst moment, or swallow everything."""

import contextlib
import socket
import threading

from tests.kit.databases import DEADLINE
from tests.kit.network import CHUNK, Network, shut


class Wire(Network):
    """A line to the server that is cut at a COMMIT: before the server hears it, or before its answer is heard."""

    def __init__(self, url: str, *, heard: bool, at: bytes = b"COMMIT\0") -> None:
        """Listen; `url` is then the way through this wire. Heard: the server hears the COMMIT that is cut off.

        ``at``: what it is cut at instead.
        """
        self._heard, self._at = heard, at
        self.armed = threading.Event()
        """Set from where on a COMMIT is cut off."""
        self.swallows = threading.Event()
        """Set from where on everything is taken, in both directions, and nothing is passed on."""
        self._swallowing = False
        self._swallowed = b""
        super().__init__(url)

    def swallows_at_commit(self) -> None:
        """Pass the next COMMIT of a journal on, and then nothing more. Renewals of the lease are let through."""
        self._swallowing = True

    def swallows_from(self, text: bytes) -> None:
        """Pass nothing on from the first request that has this text, in no direction."""
        self._swallowed = text

    def carry(self, client: socket.socket) -> None:
        """Pass on what is sent, up to the COMMIT."""
        server = self.connect()
        back = threading.Thread(target=self._answer, args=(server, client), daemon=True)
        back.start()
        try:
            self._ask(client, server)
            server.shutdown(socket.SHUT_WR)  # the server reads what was sent, then ends
        finally:
            back.join(DEADLINE)
            self.end(server)

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        journal = False
        while data := client.recv(CHUNK):
            journal = journal or b"SET batch" in data
            if self._swallowed and self._swallowed in data:
                self.swallows.set()
            if self.swallows.is_set():
                continue
            if self._swallowing and journal and self._at in data:
                self.swallows.set()
            elif self._at in data and self.armed.is_set():
                shut(client)
                if self._heard:
                    server.sendall(data)
                return
            server.sendall(data)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(CHUNK):
                if not self.swallows.is_set():
                    with contextlib.suppress(OSError):  # cut off; the server is heard to its end
                        client.sendall(data)
