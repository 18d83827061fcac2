"""A network between a program and a PostgreSQL server, which can be cut, or swallow all that is sent."""

import contextlib
import socket
import threading

from tests.kit.network import CHUNK, Network, shut


class Proxy(Network):
    """Hands on what is sent, in both directions, or holds it."""

    def __init__(self, url: str) -> None:
        """Stand before the server of a URL."""
        self._open = threading.Event()
        self._open.set()
        super().__init__(url)

    def hold(self) -> None:
        """Take what is sent, from both ends, and hand nothing on."""
        self._open.clear()

    def release(self) -> None:
        """Hand on again, first what was held."""
        self._open.set()

    def close(self) -> None:
        """End the network, also one that holds."""
        self.release()
        super().close()

    def carry(self, client: socket.socket) -> None:
        """Hand on what comes on a line, in both directions, until one end is closed."""
        self._open.wait()
        server = self.connect()
        back = threading.Thread(target=self._hand_on, args=(server, client), name="network", daemon=True)
        back.start()
        self._hand_on(client, server)
        back.join()
        self.end(server)

    def _hand_on(self, source: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while said := source.recv(CHUNK):
                self._open.wait()
                other.sendall(said)
        shut(source)
        shut(other)
