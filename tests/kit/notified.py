"""The socket on which systemd would listen to a service."""

import socket
import threading
from pathlib import Path


class Notified:
    """Hears all that is told, at once: the queue of such a socket is short."""

    def __init__(self, address: str | Path) -> None:
        self.told: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(address))
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        while data := self._socket.recv(1000):
            self.told.append(data.decode())

    def close(self) -> None:
        """Hear no more."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._reading.join()
        self._socket.close()
