"""A provider whose replies are written beforehand: for tests, and for demonstrations that always go the same way.

    ScriptedProvider(["Hello.", Reply(tool_calls=(ToolCall("read", {"path": "a"}),)), ProviderError("overloaded")])
    ScriptedProvider({"dba": ["first", "second"], None: ["for the agents without a name"]})
    ScriptedProvider(lambda request: f"{len(request.messages)} messages")
    ScriptedProvider([Stream(("Hel", "lo"), then=ProviderError("cut"))])

Each request takes the next reply of its script, and is kept in `ScriptedProvider.requests`. If the agent has no script,
or its script is used up, the request fails with a `ProviderError`.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ikigai_actors.arguments import check_seconds, shown
from ikigai_actors.errors import BadInput, ProviderError
from ikigai_actors.providers.base import Delta, OnDelta, Reply, Request
from ikigai_actors.providers.shorthand import as_reply


@dataclass(frozen=True, slots=True)
class Stream:
    """A scripted reply that arrives in pieces, and may break off."""

    deltas: tuple[str | Delta, ...] = ()
    """The pieces, in order."""
    then: str | Reply | Exception | None = None
    """The end of the stream after the last piece; None for a reply with the text of the pieces."""
    delay: float = 0.0
    """Seconds before each piece, and before the end."""

    @property
    def text(self) -> str:
        """The text of all pieces, without thinking."""
        deltas = (Delta(delta) if isinstance(delta, str) else delta for delta in self.deltas)
        return "".join(delta.text for delta in deltas if delta.kind == "text")


ScriptedReply = str | Reply | Exception | Stream
"""The answer to one request; an exception is raised by the provider."""

ReplyFunction = Callable[[Request], ScriptedReply | Awaitable[ScriptedReply]]
"""A function that returns the answer to a request. If plain, it runs on the event loop, so it must not block."""

Script = Iterable[ScriptedReply] | ReplyFunction
"""The replies of one agent or of all agents: a sequence, or a function of the request."""


class ScriptedProvider:
    """Answers with replies from a script.

    Args:
        replies: The replies in order, of all agents together; or a dict of such scripts by the agents' names (None for
            the agents without a name); or a function of the request.

    Raises:
        BadInput: A script is a single reply: put it into a list.
    """

    name = "scripted"
    counts = False

    def __init__(self, replies: Script | Mapping[str | None, Script]) -> None:
        self.requests: list[Request] = []
        """All requests so far, in order of arrival."""
        self._by_name = isinstance(replies, Mapping)
        scripts = replies if isinstance(replies, Mapping) else {None: replies}
        self._scripts = {name: _opened(script) for name, script in scripts.items()}
        self._lock = threading.Lock()  # a generator may not be entered by two threads

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Return the next reply of the agent's script; raises it if it is an exception."""
        self.requests.append(request)
        script = self._script(request)
        if isinstance(script, Iterator):
            entry: object = self._next(script, request)
        else:
            answer = script(request)
            entry = await answer if inspect.isawaitable(answer) else answer
        if isinstance(entry, Stream):
            return await _play(entry, on_delta)
        return _finish(entry, on_delta)

    async def close(self) -> None:
        """Do nothing."""

    def _script(self, request: Request) -> Iterator[ScriptedReply] | ReplyFunction:
        name = request.name if self._by_name else None
        if name not in self._scripts:
            known = ", ".join(repr(each) for each in self._scripts) or "nobody"
            raise ProviderError(
                f"Expected a script for agent {request.name!r} ({request.agent}); there are scripts for {known}."
            )
        return self._scripts[name]

    def _next(self, script: Iterator[ScriptedReply], request: Request) -> ScriptedReply:
        with self._lock:
            for reply in script:
                return reply
        whose = f"of agent {request.name!r}" if self._by_name else "of all agents"
        raise ProviderError(
            f"The script {whose} is used up: request {len(self.requests)} finds no reply left. Add one."
        )


def _opened(script: Script) -> Iterator[ScriptedReply] | ReplyFunction:
    if isinstance(script, str | Reply | Exception | Stream) or not (callable(script) or isinstance(script, Iterable)):
        raise BadInput(
            f"Expected a script as a list of replies or a function, got {script!r}. Put a single reply into a list."
        )
    for reply in script if isinstance(script, list | tuple) else ():
        if not isinstance(reply, str | Reply | Exception | Stream | Sequence):
            raise BadInput(
                f"Expected each reply of a script to be text, a Reply, an error or a Stream; got {shown(reply)}."
            )
    return iter(script) if isinstance(script, Iterable) else script


async def _play(stream: Stream, on_delta: OnDelta) -> Reply:
    """Send the pieces of a stream as deltas; then return its reply, or raise its error."""
    check_seconds(stream.delay, "the delay of a Stream")
    if not isinstance(stream.deltas, tuple | list):
        raise TypeError(f"Expected the deltas of a Stream to be a tuple, got {shown(stream.deltas)}.")
    for delta in stream.deltas:
        await asyncio.sleep(stream.delay)  # also without a delay: here it can be cancelled
        on_delta(Delta(delta) if isinstance(delta, str) else delta)
    await asyncio.sleep(stream.delay)
    if isinstance(stream.then, ProviderError):
        stream.then.partial = stream.then.partial or stream.text
    if isinstance(stream.then, Exception):
        raise stream.then
    return as_reply(stream.text if stream.then is None else stream.then)


def _finish(entry: object, on_delta: OnDelta) -> Reply:
    if isinstance(entry, Exception):
        raise entry
    reply = as_reply(entry)
    if reply.text:
        on_delta(Delta(reply.text))
    return reply
