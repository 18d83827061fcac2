"""A line to PostgreSQL that loses the answer to one commit: the server has done it, and the client does not know.

The server's messages say what was committed, however it was asked for: ``CommandComplete`` of a COMMIT, by a simple
query or by a prepared one, or ``ReadyForQuery`` outside a transaction after statements that had none, as at the Sync of
a pipeline. A transaction that wrote nothing does not count.
"""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator

from tests.kit.network import CHUNK, Network, shut

_WROTE = re.compile(rb"(INSERT \d+|UPDATE|DELETE|MERGE|COPY) [1-9]")


class Answers:
    """What a server sends on one connection, message by message."""

    def __init__(self) -> None:
        self._rest = b""
        self._wrote = False

    def read(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield each complete message, and whether it reports the commit of a transaction that has written."""
        data = self._rest + data
        start = 0
        while len(data) - start >= 5:
            end = start + 1 + int.from_bytes(data[start + 1 : start + 5], "big")
            if end > len(data):
                break
            yield data[start:end], self._tells(data[start : start + 1], data[start + 5 : end])
            start = end
        self._rest = data[start:]

    def _tells(self, kind: bytes, body: bytes) -> bool:
        wrote = self._wrote
        if kind == b"C" and _WROTE.match(body):
            self._wrote = True
        elif kind == b"E" or (kind == b"C" and body in (b"COMMIT\0", b"ROLLBACK\0")) or (kind, body) == (b"Z", b"I"):
            self._wrote = False
        return wrote and (kind, body) in ((b"C", b"COMMIT\0"), (b"Z", b"I"))


class Commits(Network):
    """Passes everything on, until `armed`: then the client of the next commit is cut off, and does not hear of it."""

    def __init__(self, url: str) -> None:
        """Listen; ``url`` of this object is the way through it."""
        self.armed = threading.Event()
        self.done = threading.Event()
        """The server has done the commit whose client was cut off."""
        self._lock_cut = threading.Lock()
        super().__init__(url)

    def carry(self, client: socket.socket) -> None:
        """Pass on what is sent in both directions."""
        server = self.connect()
        back = threading.Thread(target=self._answer, args=(server, client), daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK):
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)
        back.join()
        self.end(server)

    def _takes(self) -> bool:
        """Whether this commit is the one to cut."""
        with self._lock_cut:
            armed = self.armed.is_set()
            self.armed.clear()
            return armed

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        answers, cut = Answers(), False
        with contextlib.suppress(OSError):
            while not cut and (data := server.recv(CHUNK)):
                passed = b""
                for message, tells in answers.read(data):
                    if cut := tells and self._takes():
                        break
                    passed += message
                client.sendall(passed)
        if cut:
            shut(client)
            self.done.set()
