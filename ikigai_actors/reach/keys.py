"""Idempotency keys: a client that got no answer can repeat a request with its key, and nothing is done twice.

    free        no row: no request had the key, or the request was refused, perhaps by the agent itself
    did         the row names the effect of the request; the transaction of the effect has written the row
    answered    the row has the answer, too. After a crash before that, the answer is made from the named effect

A key names one request of one principal for 30 days. The key is looked up before the verb runs, since a name in a
request may mean another agent the next time. If two requests with a key come at once, the claim in the first unit
decides between them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.errors import IkigaiError, Repeated
from ikigai_actors.records.hosts.remote_commands import RemoteCommandKey, answer_of
from ikigai_actors.records.once import KeyedCall, Once, answer_under, note_answer, release_refused, scoped_key
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.system.remote.client import Client

Did = Mapping[str, Any]
"""The keys of the rows that a request wrote: ``agent`` with ``mail`` or ``request``; for other requests ``done``."""


class KnownRequest(NamedTuple):
    """An earlier request: the keys of the rows that it wrote, and its answer."""

    did: Did
    answer: dict[str, Any] | None
    """The answer; None if the process crashed before it was stored."""


class RequestRepeated(IkigaiError):
    """The request was carried out before with its key, or is the later of two at once. Nothing was written."""

    def __init__(self, known: KnownRequest) -> None:
        super().__init__("This was done before under its key.")
        self.known = known


class ClaimingUnit(Once):
    """A unit that is committed once for a key, together with the answer of its act. Raises `RequestRepeated`."""

    __slots__ = ()

    def write(self, tx: Transaction, locked: LockedRows) -> Any:
        try:
            return super().write(tx, locked)
        except Repeated as repeated:  # what asks for the unit knows of no key
            raise RequestRepeated(_known(repeated.gave)) from None


@dataclass(frozen=True, slots=True)
class _KeepAnswer(Unit):
    """A unit that stores the answer of a request."""

    call: KeyedCall
    gave: Mapping[str, Any]

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        note_answer(tx, self.call, self.gave)


@dataclass(frozen=True, slots=True)
class _ReleaseRefused(Unit):
    """A unit that releases the key of a refused request."""

    call: KeyedCall
    gave: Mapping[str, Any]

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        release_refused(tx, self.call, self.gave)


def request_under(principal: str, key: str, verb: str, arguments: Mapping[str, Any]) -> KeyedCall:
    """Return a request of a principal with a key. Raises `BadInput` for an invalid key."""
    KeyedCall(key, verb, {})
    return KeyedCall(scoped_key(principal, key), verb, arguments)


def known_request(client: Client, call: KeyedCall | None) -> KnownRequest | None:
    """Return the earlier request with the same key; None if the key is free. Raises `KeyTaken`."""
    if call is None:
        return None

    def read(tx: Transaction) -> tuple[KnownRequest, bool] | None:
        if (gave := answer_under(tx, call)) is None:
            return None
        request = _known(gave)
        return request, _was_refused(tx, request.did)

    known = client.read(read)
    if known is None:
        return None
    row, refused = known
    if refused:  # a crash came before that was noted
        release_key(client, call, row.did)
        return None
    return row


def keep_answer(client: Client, call: KeyedCall, did: Did, answer: Mapping[str, Any]) -> None:
    """Store the answer of a request under its key."""
    client.write(_KeepAnswer(call, {"did": did, "answer": answer}))


def release_key(client: Client, call: KeyedCall, did: Did) -> None:
    """Release a key whose request the agent has refused."""
    if client.read(lambda tx: _was_refused(tx, did)):
        client.write(_ReleaseRefused(call, {"did": did}))


def _was_refused(tx: Transaction, did: Did) -> bool:
    if "request" not in did:
        return False
    answer = answer_of(tx, RemoteCommandKey(did["agent"], did["request"]))
    return answer is not None and isinstance(answer.value, IkigaiError)


def _known(gave: Mapping[str, Any]) -> KnownRequest:
    return KnownRequest(gave["did"], gave.get("answer"))
