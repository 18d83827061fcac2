"""A server of the Messages API in a process of its own: it reads each request, and its answer is always the same.

with MessagesSink() as sink:
    AnthropicProvider(base_url=sink.url, api_key="none")
"""

import json
import multiprocessing
import socket
import threading
from collections.abc import Iterator
from ctypes import c_long
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

_MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
}
_EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": {**_MESSAGE, "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Heard."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)
_STREAM = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _EVENTS).encode()
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n%b" % (
    len(_STREAM),
    _STREAM,
)


class MessagesSink:
    """The server, as a context manager."""

    def __enter__(self) -> "MessagesSink":
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        self._size: Synchronized[int] = spawn.Value(c_long, 0)
        self._process = spawn.Process(target=_serve, args=(theirs, self._size), daemon=True)
        self._process.start()
        self.url = f"http://127.0.0.1:{ours.recv()}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.join()

    def received(self) -> int:
        """The size of the latest body, in bytes."""
        return self._size.value

    def connect(self) -> socket.socket:
        """A plain connection to it."""
        address = urlsplit(self.url)
        return socket.create_connection((address.hostname, address.port))


def post(connection: socket.socket, body: bytes) -> None:
    """Send a body and read the answer: what no client can do without."""
    connection.sendall(b"POST /v1/messages HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body))
    connection.sendall(body)
    left = len(_ANSWER)
    while left:
        left -= len(connection.recv(left))


def _serve(ready: Connection, size: "Synchronized[int]") -> None:
    server = socket.create_server(("127.0.0.1", 0))
    ready.send(server.getsockname()[1])
    while True:
        connection, _ = server.accept()
        threading.Thread(target=_answer, args=(connection, size), daemon=True).start()


def _answer(connection: socket.socket, size: "Synchronized[int]") -> None:
    with connection, connection.makefile("rb") as requests:
        while lengths := [int(line.split(b":")[1]) for line in _head(requests) if line.startswith(b"content-length")]:
            left = size.value = lengths[0]
            while left:
                left -= len(requests.read(min(left, 1 << 20)))
            connection.sendall(_ANSWER)


def _head(requests: Any) -> Iterator[bytes]:
    """The lines of the head of a request, in lower case; none at the end."""
    while (line := requests.readline().strip().lower()) != b"":
        yield line
