"""A web server of a test, on a port of this machine."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LocalServer(ThreadingHTTPServer):
    """A server that answers in threads of its own from its making to `close`."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        # It looks so often whether it shall end: by default every half a second, for which each test would wait.
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more requests."""
        self.shutdown()
        self._thread.join()
        self.server_close()
