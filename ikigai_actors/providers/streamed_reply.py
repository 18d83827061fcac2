"""Streamed replies: the common part of the three protocols.

    await received(response, ChatReply(request.tools), on_delta)

A protocol is a subclass of `StreamedReply`: it takes events one by one, and gives the whole reply at the end.
`received` reads the response, and counts the bytes as they come.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Protocol

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Delta, OnDelta, Reply
from ikigai_actors.providers.event_stream import EventStream, is_heartbeat
from ikigai_actors.providers.malformed import MalformedStreamError
from ikigai_actors.text import unambiguous

SILENT = "The model fell silent in the middle of its reply and was given up: /resume, or resume(), asks again."
CUT = "The connection broke in the middle of the reply: /resume, or resume(), asks again."
_PAGE = 200
"""The number of characters of an error page that an error text quotes."""
_BEGINNING = 2_000
"""The number of first bytes of an error page that are read."""
LONGEST_PAUSE_IN_REPLY = 1_200
"""The most seconds between two pieces of a reply, if no time-out is set. Models may think for many minutes; heartbeats
do not count as pieces.
"""


class Response(Protocol):
    """The response of a client, before its body is read."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers."""

    def iter_bytes(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""


class ServiceFailure(Exception):
    """Raised if the service reports an error within its stream."""

    def __init__(self, error: object) -> None:
        """Read the value of ``error``: a text, or an object with ``message``, ``code`` and ``type``."""
        fields: Mapping[str, Any] = error if isinstance(error, Mapping) else {"message": error}
        said = fields.get("message")
        super().__init__(str(said if said else json.dumps(error, default=str)))
        self.words = tuple(str(fields[name]) for name in ("code", "type") if fields.get(name) not in (None, ""))
        """The code and type, as far as there are any."""


class NoStreamError(Exception):
    """Raised if the service answers with something other than a stream of events."""

    def __init__(self, media: str, beginning: str) -> None:
        shown = " ".join(beginning.split())[:_PAGE]
        super().__init__(f"expected a stream of events, got {media or 'no type'}: {shown!r}")


class HalfACallError(Exception):
    """Raised if a reply ends within the arguments of a call."""

    def __init__(self, name: str, why: str = "max_tokens") -> None:
        super().__init__(name)
        self.name = name
        self.why = why
        """The reason that the service gave for the end."""


class BrokenArgumentsError(MalformedStreamError):
    """Raised if a model wrote arguments that are no JSON object. It may do better if asked again."""


class StreamedReply(ABC):
    """A reply while it arrives: takes the events of a stream, and returns the whole reply at the end."""

    def __init__(self) -> None:
        self._text: list[str] = []

    @property
    def text(self) -> str:
        """Return the text that has been received so far."""
        return "".join(self._text)

    @property
    @abstractmethod
    def is_whole(self) -> bool:
        """Return whether the service has marked the end of the reply."""

    @abstractmethod
    def deltas_of(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """Take an event; yield the deltas in it. Raises `ServiceFailure` and `MalformedStreamError`."""

    @abstractmethod
    def reply(self) -> Reply:
        """Return the finished reply. Raises `HalfACallError` and `MalformedStreamError`."""


def read_arguments(name: str, text: str, cut: bool) -> dict[str, Any]:
    """Return the arguments of a call from JSON. Incomplete arguments are refused, since they must never run.

    Args:
        name: the call's name.
        text: its arguments as JSON. Some servers send nothing, or ``null``, for a call without arguments.
        cut: whether the reply ended before its time.

    Raises:
        HalfACallError: the reply was cut within them, or before they began.
        BrokenArgumentsError: they are no JSON object.
    """
    if cut and not text.strip():
        raise HalfACallError(name)
    try:
        value = json.loads(text, object_pairs_hook=unambiguous) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        if cut:
            raise HalfACallError(name) from error
        raise BrokenArgumentsError(f"the arguments of the call of {name!r} are no JSON: {error}") from error
    if not isinstance(value, dict | None):
        raise BrokenArgumentsError(f"the arguments of the call of {name!r} are no JSON object")
    return value or {}


async def received(
    response: Response, arriving: StreamedReply, on_delta: OnDelta, longest_pause: float | None = None
) -> Reply:
    """Read a response to its end, pass its deltas on, and return the reply.

    Raises the errors of `StreamedReply`, and `ProviderError`.

    Args:
        longest_pause: The most seconds between two pieces of the reply; None for `LONGEST_PAUSE_IN_REPLY`. The client
            gives up a connection that is silent; here it is one on which only heartbeats come.
    """
    media = response.headers.get("content-type", "")
    if "event-stream" not in media:
        raise NoStreamError(media, await _beginning(response))
    stream, loop = EventStream(), asyncio.get_running_loop()
    latest = loop.time()
    async for data in response.iter_bytes():
        for event in stream.feed(data):
            if not is_heartbeat(event):
                latest = loop.time()
            for delta in arriving.deltas_of(event):
                on_delta(delta)
        if loop.time() - latest > (longest_pause or LONGEST_PAUSE_IN_REPLY):
            raise ProviderError(SILENT, arriving.text, broke_off=True)
        await asyncio.sleep(0)  # a server that floods would keep the event loop to itself
    for event in stream.finish():
        for delta in arriving.deltas_of(event):
            on_delta(delta)
    if not arriving.is_whole:
        raise ProviderError(CUT, arriving.text, broke_off=True)
    return arriving.reply()


async def _beginning(response: Response) -> str:
    """Return the beginning of the page in a response. The rest is not read, since a page may be endless."""
    begun = b""
    async for data in response.iter_bytes():
        begun += data
        if len(begun) >= _BEGINNING:
            break
    return begun[:_BEGINNING].decode("utf-8", "replace")
