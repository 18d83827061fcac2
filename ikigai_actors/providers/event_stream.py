"""Server-sent events, as services stream their replies: bytes to the JSON objects of their data. Pure.

    stream = EventStream()
    for data in received:
        for event in stream.feed(data): ...
    for event in stream.finish(): ...

Real servers deviate from the standard: an event may end with the stream instead of a blank line, and a line with CRLF.
An event that is too long is refused, since nobody else counts the bytes.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ikigai_actors.providers.malformed import MalformedStreamError, expect

LARGEST_EVENT = 16 * 2**20
"""Bytes of an event at most."""
LONGEST_STREAM = 256 * 2**20
"""Bytes of a reply at most."""
_END = "[DONE]"
_HEARTBEATS = frozenset({"ping", "keepalive", "response.queued", "response.in_progress"})
"""The types of events by which a service says only that the connection is alive."""


class EventStream:
    """Decodes the server-sent events of one streamed response."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = self._received = 0

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Take bytes; yield the events that they complete. Raises `MalformedStreamError`."""
        self._received += len(data)
        if self._received > LONGEST_STREAM:
            raise MalformedStreamError(f"it does not end: {LONGEST_STREAM >> 20} MB have come")
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole, self._line = bytes(self._line) + line, bytearray()
            yield from self._take(whole.removesuffix(b"\r"))
        self._line += rest
        if self._size + len(self._line) > LARGEST_EVENT:
            raise MalformedStreamError(f"an event does not end: {LARGEST_EVENT >> 20} MB of it have come")

    def finish(self) -> Iterator[dict[str, Any]]:
        """Yield the last event, if the stream ended without a blank line. Raises `MalformedStreamError`."""
        yield from self._take(bytes(self._line))
        yield from self._take(b"")

    def _take(self, line: bytes) -> Iterator[dict[str, Any]]:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            self._size += len(line)
        elif not line and self._data:
            text = b"\n".join(self._data).decode("utf-8", "replace")
            self._data, self._size = [], 0
            if text.strip() != _END:
                yield _parsed(text)


def is_heartbeat(event: Mapping[str, Any]) -> bool:
    """Return whether an event carries no part of a reply: a ping, or a chunk without content."""
    if "type" in event or "error" in event:
        return event.get("type") in _HEARTBEATS
    choices = event.get("choices")
    return not any(_says_something(choice) for choice in choices) if isinstance(choices, list) else choices is None


def _says_something(choice: object) -> bool:
    if not isinstance(choice, Mapping) or choice.get("finish_reason") is not None:
        return True
    delta = choice.get("delta")
    return any(value for name, value in delta.items() if name != "role") if isinstance(delta, Mapping) else bool(delta)


def _parsed(text: str) -> dict[str, Any]:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedStreamError(f"broken JSON in the stream: {error}") from error
    return expect(dict, value, "event in the stream")
