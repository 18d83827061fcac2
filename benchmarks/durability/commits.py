"""A line to PostgreSQL that loses the answer to one COMMIT: the server has done it, and the client does not know."""

import contextlib
import socket
import threading

from tests.kit.network import CHUNK, Network, shut

_ASKED = b"COMMIT\0"
_DONE = b"C\0\0\0\x0bCOMMIT\0"
"""CommandComplete, of a COMMIT."""


class Commits(Network):
    """Passes everything on, until `armed`: then the next COMMIT is passed on, and its client cut off."""

    def __init__(self, url: str) -> None:
        """Listen; ``url`` of this object is the way through it."""
        self.armed = threading.Event()
        self.done = threading.Event()
        """The server has done the COMMIT whose client was cut off."""
        self._lock_cut = threading.Lock()
        super().__init__(url)

    def carry(self, client: socket.socket) -> None:
        """Pass on what is sent in both directions."""
        server = self.connect()
        cut = threading.Event()
        back = threading.Thread(target=self._answer, args=(server, client, cut), daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK):
                if _ASKED in data and self._takes():
                    cut.set()
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)
        back.join()
        self.end(server)

    def _takes(self) -> bool:
        """Whether this COMMIT is the one to cut."""
        with self._lock_cut:
            armed = self.armed.is_set()
            self.armed.clear()
            return armed

    def _answer(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(CHUNK):
                if cut.is_set() and _DONE in data:
                    self.done.set()
                    shut(client)
                if not cut.is_set():
                    client.sendall(data)
