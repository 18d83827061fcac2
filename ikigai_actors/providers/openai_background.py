"""Replies of Responses that the service generates in the background, and stores for later readers.

Such a reply does not end with its connection: where that breaks, or the process ends, it is read again by its id. The
events are numbered, and the service sends those after a number.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers import openai_errors
from ikigai_actors.providers.base import Delta, KeptReply, OnDelta, Reply
from ikigai_actors.providers.openai_responses import ENCRYPTED, ResponsesReply
from ikigai_actors.providers.streamed_reply import received

if TYPE_CHECKING:
    from openai import AsyncAPIResponse, AsyncOpenAI

_READS_IN_VAIN = 3
"""The number of attempts to read a reply on from the same place, before its turn waits for the service."""

_BROKE = "The connection broke while the service went on with the reply: it is read again."

Opened = Callable[[], "AbstractAsyncContextManager[AsyncAPIResponse[Any]]"]
"""A function that sends a request and returns a context with the stream of its events."""


class BackgroundReply(ResponsesReply):
    """A reply that its service generates in the background and stores, while it is being read."""

    def __init__(self, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(tools)
        self.kept: KeptReply | None = None
        """The reply, and after which of its events to read on; None until the service has named it."""

    def deltas_of(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        number = event.get("sequence_number")
        if self.kept is None:
            response = event.get("response")
            if isinstance(response, Mapping) and isinstance(named := response.get("id"), str) and named:
                self.kept = KeptReply(named, number if isinstance(number, int) else 0)
                yield Delta(kept=self.kept)
        elif isinstance(number, int):
            self.kept = KeptReply(self.kept.id, number)
        yield from super().deltas_of(event)

    def go_on_with(self, kept: KeptReply) -> None:
        """Continue to read a reply that the service has stored under this id."""
        self.kept = kept


async def read_in_background(
    client: "AsyncOpenAI",
    ask: Opened,
    kept: KeptReply | None,
    reply: BackgroundReply,
    on_delta: OnDelta,
    pause: float | None,
) -> Reply:
    """Read a reply to its end, over several connections if they break. Raises the errors of `received`.

    Args:
        ask: sends the request.
        kept: the stored reply to the request; None if there is none. If the service no longer has it, the request is
            sent.
        pause: as for `received`.
    """
    if kept is not None:
        reply.go_on_with(kept)
    in_vain, cause = 0, Exception()
    while in_vain < _READS_IN_VAIN:
        before = reply.kept
        opened = ask() if before is None else _read_on(client, before)
        try:
            async with opened as response:
                return await received(response, reply, on_delta, pause)
        except openai_errors.failures() as error:
            if _is_gone(error) and before is not None and before is kept:
                reply.kept = None
                continue
            if reply.kept is None or not _is_cut(error):
                raise
            cause = error
        except ProviderError as error:
            if reply.kept is None or not error.broke_off or error.__cause__ is not None:
                raise
            cause = error
        in_vain = in_vain + 1 if reply.kept == before else 0
    raise ProviderError(_BROKE, reply.text, broke_off=True, retry_after=0.0, is_kept=True) from cause


def _read_on(client: "AsyncOpenAI", kept: KeptReply) -> "AbstractAsyncContextManager[AsyncAPIResponse[Any]]":
    retrieve: Any = client.responses.with_streaming_response.retrieve
    opened: AbstractAsyncContextManager[AsyncAPIResponse[Any]] = retrieve(
        kept.id, stream=True, starting_after=kept.after, include=[ENCRYPTED]
    )
    return opened


def _is_gone(error: Exception) -> bool:
    """Return whether an error means that the service no longer has a reply, or refuses to send it again."""
    import openai

    return isinstance(error, openai.NotFoundError | openai.BadRequestError | openai.ConflictError)


def _is_cut(error: Exception) -> bool:
    """Return whether an error means only a broken connection, so that the reply can be read on."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return bool(error.status_code >= 500)
    unreached = isinstance(error, openai.APIConnectionError)
    return unreached or (openai_errors.status_of(error) is None and openai_errors.broke_off(error))
