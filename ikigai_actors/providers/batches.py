"""The batches of a service: many requests at half the price, answered within a day.

A provider whose service has batches has the methods of `BatchService` as well as its own. The provider remembers no
batch: the database has each request and its result (`ikigai_actors.records.batches`).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, cast

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Reply, Request
from ikigai_actors.providers.malformed import MalformedStreamError
from ikigai_actors.providers.secrets import as_cause, without_keys
from ikigai_actors.providers.service_client import Diagnosis
from ikigai_actors.providers.streamed_reply import StreamedReply
from ikigai_actors.text import described


class MemberOutcome(NamedTuple):
    """The result of one request of a batch, as the service reports it."""

    kind: str
    """The kind: ``succeeded``; ``refused`` if the request is wrong; ``not taken`` if the service refuses the batch;
    otherwise the service did not answer the request.
    """
    result: str
    """The answer as JSON, or the reason."""


class ListedBatch(NamedTuple):
    """A batch in the list of a service, with our own name of the batch if the service returns it."""

    remote: str
    """The id of the batch at the service."""
    size: int
    """The number of requests."""
    has_ended: bool
    id: str | None
    """Our id of the batch; None if the service stores none: then only the results have it."""


class BatchRequest(NamedTuple):
    """One request of a batch."""

    custom_id: str
    """The id that the result of this request will have: see `custom_id`."""
    body: bytes
    """The request, as `BatchService.batch_body` has written it."""


class BatchResult(NamedTuple):
    """One result of a batch."""

    custom_id: str
    outcome: MemberOutcome


class BatchService(Protocol):
    """A provider whose service has batches. Methods that ask the service raise `ProviderError`.

    An error marked ``free`` means that the service has certainly not accepted the batch.
    """

    def takes_batches(self) -> bool:
        """Return whether the service at the provider's address has batches."""

    async def batch_body(self, request: Request) -> bytes:
        """Return the request in the form for a batch. Raises `ProviderError` for a request that cannot be sent."""

    def batch_reply(self, request: Request, result: str) -> Reply:
        """Return the reply in a successful result of a batch. Raises `ProviderError`."""

    async def create_batch(self, id: str, requests: Sequence[BatchRequest]) -> str:  # noqa: A002 - its field's name
        """Send a batch; return the id that the service gives it."""

    async def listed_batches(self) -> Sequence[ListedBatch]:
        """Return the batches that the service lists, latest first: at least those of the last days."""

    async def has_ended(self, remote: str) -> bool:
        """Return whether the results of a batch can be read."""

    async def batch_results(self, remote: str) -> Sequence[BatchResult]:
        """Return the results of an ended batch, in any order."""

    async def cancel_batch(self, remote: str) -> None:
        """Cancel the rest of a batch; results that exist are kept. Does nothing for an ended batch."""


def batches_of(provider: object) -> BatchService | None:
    """Return the provider if its service has batches; None otherwise."""
    takes = getattr(provider, "takes_batches", None)
    return cast(BatchService, provider) if takes is not None and takes() else None


def custom_id(agent: str, position: int, attempt: int, batch: str) -> str:
    """Return the id under which a request is sent in a batch: at most 64 letters, digits and hyphens.

    The id ends with our own name of the batch.
    """
    identity = "\0".join((agent, str(position), str(attempt)))
    return f"{hashlib.sha256(identity.encode()).hexdigest()[:24]}-{batch}"


def batch_in(custom_id: str) -> str:
    """Return our own name of a batch from the id of one of its requests."""
    return custom_id.rpartition("-")[2]


def whole_reply(reply: StreamedReply, event: Mapping[str, Any]) -> Reply:
    """Return the reply from an event that contains all of it. Raises the errors of a streamed reply."""
    for _ in reply.deltas_of(event):
        pass
    if not reply.is_whole:
        raise MalformedStreamError("an answer that does not say why it ends")
    return reply.reply()


@contextmanager
def batch_errors(
    diagnosis: Diagnosis, service: str, keys: Callable[[], Iterable[str | None]], about: str = "batches"
) -> Iterator[None]:
    """Turn errors of requests about batches into `ProviderError`, without keys in the text."""
    try:
        yield
    except diagnosis.failures() as error:
        raise ProviderError(
            without_keys(f"The {about} of {service} gave an error: {described(error)}", keys()),
            unavailable=diagnosis.is_unavailable(error),
            free=diagnosis.is_free(error),
            retry_after=diagnosis.retry_after(error),
        ) from as_cause(error, keys())
