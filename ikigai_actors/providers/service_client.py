"""The client of a service, and the handling of its errors.

    self._client = ServiceClient(_import_client)
    await self._client.enter()
    with provider_errors(anthropic_errors, reply, explain, keys, limit, request):
    client = self._client.get(self._new_client)

Every protocol that is streamed over HTTP uses both.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from ikigai_actors.arguments import check_seconds
from ikigai_actors.errors import ProviderError
from ikigai_actors.providers import remedies
from ikigai_actors.providers.base import Request
from ikigai_actors.providers.malformed import MalformedStreamError
from ikigai_actors.providers.secrets import as_cause, without_keys
from ikigai_actors.providers.streamed_reply import BrokenArgumentsError, HalfACallError, StreamedReply

CONNECTIONS = 8
"""The number of requests that begin in one turn of the event loop."""


class Closable(Protocol):
    """A client of a service that can be closed."""

    async def close(self) -> None:
        """Close the connections."""


ClientT = TypeVar("ClientT", bound=Closable)


class ServiceClient(Generic[ClientT]):
    """The client of one event loop; another loop gets a new one, since connections cannot go from loop to loop.

    Args:
        load: Imports the client's package. It takes more than a second, so it runs on a thread of its own.
    """

    def __init__(self, load: Callable[[], None]) -> None:
        self.made: ClientT | None = None
        """The client, once it was needed."""
        self._load = load
        self._loop: asyncio.AbstractEventLoop | None = None
        self._door = asyncio.Semaphore(CONNECTIONS)

    async def enter(self) -> None:
        """Let only a few requests begin at a time, so that the event loop serves other connections in between.

        When a thousand start at the same moment, each connection would otherwise wait until the last request is built,
        and time out.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self.made, self._door, self._loop = None, asyncio.Semaphore(CONNECTIONS), loop
        async with self._door:
            if self.made is None:
                await asyncio.to_thread(self._load)  # on this thread it would stop every other agent's stream
            await asyncio.sleep(0)

    def get(self, make: Callable[[], ClientT]) -> ClientT:
        """Return the client of this event loop; made by ``make`` if there is none."""
        if self.made is None:
            self.made = make()
        return self.made

    async def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        client, self.made = self.made, None
        if client is not None:
            await client.close()


class Diagnosis(Protocol):
    """Functions that classify the errors of a client: a module for each protocol."""

    def failures(self) -> tuple[type[Exception], ...]:
        """Return the exceptions of the client in which a request may end."""

    def broke_off(self, error: Exception) -> bool:
        """Return whether a connection broke after the reply had begun, without an error in the request."""

    def is_unavailable(self, error: Exception) -> bool:
        """Return whether the service is unavailable, so that another one may be asked instead."""

    def is_free(self, error: Exception) -> bool:
        """Return whether the service refused the request before a reply began, and bills nothing."""

    def retry_after(self, error: Exception) -> float | None:
        """Return the seconds after which the same request may be sent again, as `ProviderError.retry_after`."""


@contextmanager
def provider_errors(
    diagnosis: Diagnosis,
    reply: StreamedReply,
    explain: Callable[[Exception], str],
    keys: Callable[[], Iterable[str | None]],
    limit: Callable[[], object],
    request: Request,
) -> Iterator[None]:
    """Turn errors while a reply arrives into `ProviderError`, with the partial text and without keys.

    Args:
        diagnosis: classifies the errors.
        reply: The reply so far.
        explain: returns the text for an error.
        keys: secrets that no text may quote.
        limit: returns the largest number of tokens of the reply, for the texts.
    """
    try:
        yield
    except HalfACallError as error:
        message = remedies.half_a_call(error.name, error.why, limit(), request.cut_by_budget)
        raise ProviderError(message, reply.text) from error
    except MalformedStreamError as error:
        message, again = without_keys(remedies.garbled(error), keys()), isinstance(error, BrokenArgumentsError)
        raise ProviderError(message, reply.text, broke_off=again) from as_cause(error, keys())
    except diagnosis.failures() as error:
        after = diagnosis.retry_after(error)
        raise ProviderError(
            without_keys(f"{explain(error)}{remedies.asked_to_wait(after)}", keys()),
            reply.text,
            broke_off=diagnosis.broke_off(error),
            unavailable=diagnosis.is_unavailable(error),
            free=diagnosis.is_free(error),
            retry_after=after,
        ) from as_cause(error, keys())


def client_options(timeout: float | None) -> dict[str, Any]:
    """Return the options of every client. It never retries by itself: the agent's turn does, where people see it wait.

    Raises `BadInput` for a wrong time.
    """
    options: dict[str, Any] = {"max_retries": 0}
    if timeout is not None:
        options["timeout"] = check_seconds(timeout, "timeout", zero=False)
    return options
