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
    """The end of a request, as its service has it."""

    kind: str
    """``succeeded``; ``refused`` where the request is at fault; ``not taken`` where the service refuses the batch;
    else the service has not answered it."""
    result: str
    """The answer as JSON, or the reason."""


class ListedBatch(NamedTuple):
    """A batch that a service lists."""

    remote: str
    """The name of it at the service."""
    size: int
    """How many requests it has."""
    has_ended: bool
    id: str | None
    """Our name of it; None where the service does not keep one: only the results have it."""


class BatchRequest(NamedTuple):
    """One request of a batch."""

    custom_id: str
    """The id under which its result comes: see `custom_id`."""
    body: bytes
    """The request, as `BatchService.batch_body` has written it."""


class BatchResult(NamedTuple):
    """One result of a batch."""

    custom_id: str
    outcome: MemberOutcome


class BatchService(Protocol):
    """A provider whose service has batches. Methods that ask the service raise `ProviderError`.

    One that is ``free`` is certain: the service has not taken the batch.
    """

    def takes_batches(self) -> bool:
        """Whether the service at its address has batches."""

    async def batch_body(self, request: Request) -> bytes:
        """The request as a batch has it. Raises `ProviderError` for one that cannot be sent."""

    def batch_reply(self, request: Request, result: str) -> Reply:
        """The reply in a result that succeeded. Raises `ProviderError`."""

    async def create_batch(self, id: str, requests: Sequence[BatchRequest]) -> str:  # noqa: A002 - its field's name
        """Send a batch; return the service's name of it."""

    async def listed_batches(self) -> Sequence[ListedBatch]:
        """The batches that the service lists, the latest first: those of the last days, at least."""

    async def has_ended(self, remote: str) -> bool:
        """Whether the results of a batch are there."""

    async def batch_results(self, remote: str) -> Sequence[BatchResult]:
        """The results of a batch that has ended, in any order."""

    async def cancel_batch(self, remote: str) -> None:
        """Ask for no more results than there are. A batch that has ended stays as it is."""


def batches_of(provider: object) -> BatchService | None:
    """The batches of a provider's service; None where it has none."""
    takes = getattr(provider, "takes_batches", None)
    return cast(BatchService, provider) if takes is not None and takes() else None


def custom_id(agent: str, position: int, attempt: int, batch: str) -> str:
    """The id of a request at the service: at most 64 letters, digits and hyphens, with our name of the batch last."""
    identity = "\0".join((agent, str(position), str(attempt)))
    return f"{hashlib.sha256(identity.encode()).hexdigest()[:24]}-{batch}"


def batch_in(custom_id: str) -> str:
    """Our name of the batch that a request is of."""
    return custom_id.rpartition("-")[2]


def whole_reply(reply: StreamedReply, event: Mapping[str, Any]) -> Reply:
    """The reply that comes as a whole, in one event of its protocol. Raises what a streamed one raises."""
    for _ in reply.deltas_of(event):
        pass
    if not reply.is_whole:
        raise MalformedStreamError("an answer that does not say why it ends")
    return reply.reply()


@contextmanager
def batch_errors(
    diagnosis: Diagnosis, service: str, keys: Callable[[], Iterable[str | None]], about: str = "batches"
) -> Iterator[None]:
    """Turn what goes wrong as a service is asked about what it keeps into a `ProviderError`, without keys."""
    try:
        yield
    except diagnosis.failures() as error:
        raise ProviderError(
            without_keys(f"The {about} of {service} gave an error: {described(error)}", keys()),
            unavailable=diagnosis.is_unavailable(error),
            free=diagnosis.is_free(error),
            retry_after=diagnosis.retry_after(error),
        ) from as_cause(error, keys())
