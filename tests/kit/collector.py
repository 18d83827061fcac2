"""A collector of spans on a port of this machine."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler

from tests.kit.http_servers import LocalServer


@contextmanager
def collector(answer: tuple[int, bytes]) -> Iterator[str]:
    """A collector that answers each request like this; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(answer[0])
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer[1])))
            self.end_headers()
            self.wfile.write(answer[1])

        def log_message(self, *args: object) -> None:
            pass

    with closing(LocalServer(Handler)) as server:
        yield server.url
