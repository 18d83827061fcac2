"""A network between a program and a PostgreSQL server, which can be cut, or swallow all that is sent."""

import contextlib
import socket
import threading
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

_CHUNK = 65_536


class Proxy:
    """Listens on loopback, and hands on to a server. Its threads are daemons, one for each direction of a line."""

    def __init__(self, url: str) -> None:
        """Stand before the server of a URL."""
        given = conninfo_to_dict(url)
        self._host, self._port = str(given["host"]), int(str(given.get("port") or 5432))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lines: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._open.set()
        user, name = quote(str(given["user"])), quote(str(given["dbname"]))
        self.url = f"postgresql://{user}@127.0.0.1:{self._listener.getsockname()[1]}/{name}"
        """How the server is reached through this network."""
        self._carrying: list[threading.Thread] = []
        self._closed = False
        self._accepting = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        """End every line at once; new ones can be made."""
        with self._lock:
            lines = list(self._lines)
        for line in lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def hold(self) -> None:
        """Take what is sent, from both ends, and hand nothing on."""
        self._open.clear()

    def release(self) -> None:
        """Hand on again, first what was held."""
        self._open.set()

    def close(self) -> None:
        """End the network."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        with self._lock:
            self._closed = True
        self.release()
        self.cut()
        for thread in self._carrying:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                self._carrying.append(threading.Thread(target=self._carry, args=(near,), name="proxy", daemon=True))
                self._carrying[-1].start()

    def _carry(self, near: socket.socket) -> None:
        """Hand on what comes on a line, in both directions, until one end is closed."""
        with near:
            self._open.wait()
            with contextlib.suppress(OSError), self._server() as far:  # else the server is down
                back = threading.Thread(target=self._hand_on, args=(far, near), name="proxy", daemon=True)
                with self._lock:
                    if self._closed:
                        return
                    self._lines |= {near, far}
                back.start()
                self._hand_on(near, far)
                back.join()
                with self._lock:
                    self._lines -= {near, far}

    def _server(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port))
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(f"{self._host}/.s.PGSQL.{self._port}")
        except OSError:
            far.close()
            raise
        return far

    def _hand_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while said := one.recv(_CHUNK):
                self._open.wait()
                other.sendall(said)
        for line in (one, other):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
