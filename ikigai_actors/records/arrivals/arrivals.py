"""Table ``arrivals``: each delivery to an endpoint, once, with its outcome.

    taken      the delivery's act is committed: a prompt, a mail, or a request for a child
    filtered   the filter of the endpoint excludes the delivery
    held       the endpoint is paused, or has the most living children that it may have: taken later, in order
    dead       the delivery cannot be taken: not the JSON that the endpoint needs, a dead agent, a full mailbox

One transaction writes the row and carries out the act. So a sender that got no answer can send again, and gets the
first answer. A crash before the commit leaves neither row nor act, a crash after it leaves both.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.records.arrivals.endpoints import endpoint_called
from ikigai_actors.records.outbox.events import ARRIVAL_DEAD, PostedEvent, post
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.unit import LockedRows, Unit

BODIES_KEPT_MS = 7 * 24 * 3600 * 1000
"""The milliseconds after which a prune deletes the body of an arrival."""

ARRIVALS_KEPT_MS = 30 * 24 * 3600 * 1000
"""The milliseconds after which a prune deletes an arrival. A repeated delivery would then count as new."""

TAKEN, FILTERED, HELD, DEAD = "taken", "filtered", "held", "dead"


class ArrivalRecord(NamedTuple):
    """A delivery that an endpoint has received: a row of the query ``arrival``."""

    endpoint: str
    id: str
    number: int
    """The number in the order of commits at its endpoint, from 1."""
    at: int
    """The time of the arrival, in milliseconds since 1970 (UTC)."""
    again_of: str | None
    """The id of the arrival that this one repeats on request; None for an original one."""
    status: str
    gave: Mapping[str, Any]
    """The result: the agent, and ``mail``, or ``request`` and ``child``; or ``why`` it was not taken."""


class Received(NamedTuple):
    """The answer of the unit `Arrive`: the recorded arrival, and whether it is new."""

    id: str
    status: str
    gave: Mapping[str, Any]
    repeated: bool = False
    """Whether the delivery had arrived before, so nothing was done."""
    done: object = None
    """The answer of the act's unit, if it was carried out now."""


@dataclass(frozen=True, slots=True)
class NewArrival:
    """A delivery that has just come in."""

    endpoint: str
    id: str
    body: bytes
    headers: Mapping[str, str]
    now: int
    again_of: str | None = None

    @property
    def sha256(self) -> str:
        """The SHA-256 of the body."""
        return hashlib.sha256(self.body).hexdigest()


class ArrivalAct(NamedTuple):
    """The act that a delivery causes: a prompt, a mail, or the birth of a child."""

    unit: Unit
    """The unit that carries it out. It checks before it writes."""
    gave: Mapping[str, Any]
    """The facts of the result that are known beforehand: the agent, and the child of a fork."""
    answer: str
    """The key in the result for the unit's answer: ``mail`` or ``request``."""
    most: int | None = None
    """The most living children of the endpoint; None if it makes none."""


class Arrive(Unit):
    """Record a delivery once, and carry out its act; answered with `Received`. Raises `EndpointNotFound`.

    A refused act raises no error, because the sender can do nothing about it. The arrival is recorded as dead.
    """

    concerns_others = True

    __slots__ = ("_act", "_arrival", "_by_body", "_status", "_why")

    def __init__(
        self,
        arrival: NewArrival,
        act: ArrivalAct | None,
        *,
        status: str = TAKEN,
        why: str = "",
        by_body: bool = False,
    ) -> None:
        """Make the unit.

        Args:
            arrival: the delivery.
            act: the act that the delivery becomes; None if nothing is done.
            status: ``filtered`` or ``dead``, if there is no act.
            why: the reason why it is dead.
            by_body: whether deliveries with equal bodies count as one.
        """
        self._arrival, self._act, self._status, self._why, self._by_body = arrival, act, status, why, by_body

    @property
    def touches(self) -> tuple[str, ...]:
        return () if self._act is None else self._act.unit.touches

    def write(self, tx: Transaction, locked: LockedRows) -> Received:
        arrival = self._arrival
        endpoint = endpoint_called(tx, arrival.endpoint)
        tx.run("lock_endpoint", name=arrival.endpoint)  # its arrivals are numbered, and counted, one after another
        if (known := self._known(tx)) is not None:
            return known
        number = 1 + tx.run("latest_arrival", endpoint=arrival.endpoint)[0][0]
        waits = endpoint.paused_at is not None or bool(arrivals_with(tx, arrival.endpoint, HELD, 1))  # those come first
        waits = waits or (self._act is not None and is_full(tx, arrival.endpoint, self._act))
        status, gave = self._status, {"why": self._why} if self._why else {}
        answer: object = None
        if self._act is not None:
            status, gave, answer = (HELD, {}, None) if waits else carried_out(tx, locked, self._act)
        if twin := tx.run("arrival_with_body", endpoint=arrival.endpoint, sha256=arrival.sha256, number=number):
            gave = {**gave, "same_body_as": twin[0][0]}
        tx.run(
            "add_arrival",
            endpoint=arrival.endpoint,
            id=arrival.id,
            number=number,
            now=arrival.now,
            again_of=arrival.again_of,
            status=status,
            gave=json.dumps(gave),
            child=gave.get("child"),
            request=gave.get("request"),
            sha256=arrival.sha256,
            headers=json.dumps(dict(arrival.headers)),
            body=arrival.body,
        )
        if status == DEAD:
            _post_dead(tx, locked, endpoint.agent, arrival.endpoint, arrival.id, arrival.now)
        return Received(arrival.id, status, gave, done=answer)

    def _known(self, tx: Transaction) -> Received | None:
        """Return the answer for a delivery that was recorded before; None for a new one."""
        arrival = self._arrival
        rows = tx.run("arrival", endpoint=arrival.endpoint, id=arrival.id)
        if not rows and self._by_body and arrival.again_of is None:
            twins = tx.run("arrival_with_body", endpoint=arrival.endpoint, sha256=arrival.sha256, number=2**62)
            rows = [row for (name,) in twins for row in tx.run("arrival", endpoint=arrival.endpoint, id=name)]
        return None if not rows else Received(rows[0][1], rows[0][5], json.loads(rows[0][6]), repeated=True)


class TakeHeld(Unit):
    """Carry out the act of a delivery that is held.

    Answered with `Received`. The status is still ``held`` if the endpoint has as many living children as it may have.
    """

    concerns_others = True

    __slots__ = ("_act", "_endpoint", "_id", "_now")

    def __init__(self, endpoint: str, delivery: str, act: ArrivalAct, now: int) -> None:
        self._endpoint, self._id, self._act, self._now = endpoint, delivery, act, now

    @property
    def touches(self) -> tuple[str, ...]:
        return self._act.unit.touches

    def write(self, tx: Transaction, locked: LockedRows) -> Received:
        tx.run("lock_endpoint", name=self._endpoint)
        arrival = arrival_called(tx, self._endpoint, self._id)
        if arrival.status != HELD or is_full(tx, self._endpoint, self._act):
            return Received(self._id, arrival.status, arrival.gave, repeated=arrival.status != HELD)
        status, gave, answer = carried_out(tx, locked, self._act)
        tx.run(
            "settle_arrival",
            endpoint=self._endpoint,
            id=self._id,
            status=status,
            gave=json.dumps(gave),
            child=gave.get("child"),
            request=gave.get("request"),
        )
        if status == DEAD:
            _post_dead(tx, locked, self._act.gave["agent"], self._endpoint, self._id, self._now)
        return Received(self._id, status, gave, done=answer)


def carried_out(tx: Transaction, locked: LockedRows, act: ArrivalAct) -> tuple[str, dict[str, Any], object]:
    """Carry out the act of a delivery. Return its status, its result, and the unit's answer.

    A refused act writes nothing.
    """
    try:
        answer = act.unit.write(tx, locked)
    except IkigaiError as refusal:
        return DEAD, {"agent": act.gave["agent"], "why": str(refusal)}, None
    number = answer if isinstance(answer, int) else getattr(answer, "mail", None) or answer.id
    return TAKEN, {**act.gave, act.answer: number}, answer


def _post_dead(tx: Transaction, locked: LockedRows, agent: str, endpoint: str, delivery: str, now: int) -> None:
    post(tx, locked, PostedEvent(ARRIVAL_DEAD, agent, now, f"{endpoint}/{delivery}", now))


def is_full(tx: Transaction, endpoint: str, act: ArrivalAct) -> bool:
    """Return whether an endpoint has as many living children as it may have. Children about to be born count."""
    if act.most is None:
        return False
    [(living,)] = tx.run("children_of_endpoint", endpoint=endpoint, agent=act.gave["agent"])
    [(coming,)] = tx.run("coming_children_of_endpoint", endpoint=endpoint, agent=act.gave["agent"])
    return int(living) + int(coming) >= act.most


def arrival_called(tx: Transaction, endpoint: str, delivery: str) -> ArrivalRecord:
    """Return an arrival by its id. Raises `BadInput`."""
    for row in tx.run("arrival", endpoint=endpoint, id=delivery):
        return _arrival(row)
    raise BadInput(f"Endpoint {endpoint!r} has no arrival {delivery!r}. See ikigai endpoint show {endpoint}.")


def latest_arrivals(tx: Transaction, endpoint: str, most: int) -> list[ArrivalRecord]:
    """Return the latest arrivals of an endpoint, newest first."""
    return [_arrival(row) for row in tx.run("arrivals", endpoint=endpoint, most=most)]


def arrivals_with(tx: Transaction, endpoint: str, status: str, most: int) -> list[ArrivalRecord]:
    """Return the oldest arrivals of an endpoint with a status, in the order of their arrival."""
    return [_arrival(row) for row in tx.run("arrivals_with", endpoint=endpoint, status=status, most=most)]


def endpoints_that_hold(tx: Transaction) -> list[str]:
    """Return the names of the endpoints that hold arrivals and are not paused."""
    return [name for (name,) in tx.run("endpoints_that_hold")]


def unrepeated_dead(tx: Transaction, endpoint: str, most: int) -> list[ArrivalRecord]:
    """Return an endpoint's oldest dead arrivals that can be repeated: they have bodies, and were not repeated yet."""
    return [_arrival(row) for row in tx.run("unrepeated_dead", endpoint=endpoint, most=most)]


def counted_arrivals(tx: Transaction, endpoint: str) -> dict[str, int]:
    """Return the number of an endpoint's arrivals by status."""
    return {status: int(count) for status, count in tx.run("count_arrivals", endpoint=endpoint)}


def body_of_arrival(tx: Transaction, endpoint: str, delivery: str) -> tuple[bytes, Mapping[str, str]]:
    """Return the body and the headers of an arrival. Raises `BadInput` if there is none, or its body was deleted."""
    arrival_called(tx, endpoint, delivery)
    [(body, headers)] = tx.run("arrival_body", endpoint=endpoint, id=delivery)
    if body is None:
        raise BadInput(f"The body of arrival {delivery!r} was deleted: bodies are kept for 7 days.")
    return bytes(body), json.loads(headers)


def again_id(tx: Transaction, endpoint: str, delivery: str) -> str:
    """Return the id of the next repetition of an arrival: ``ID~2``, ``ID~3``, and so on."""
    first = delivery.split("~", 1)[0] if arrival_called(tx, endpoint, delivery).again_of is not None else delivery
    number = 2
    while tx.run("arrival", endpoint=endpoint, id=f"{first}~{number}"):
        number += 1
    return f"{first}~{number}"


def prune_arrivals(tx: Transaction, now: int) -> None:
    """Delete bodies after 7 days and rows after 30 days, except those of held arrivals."""
    tx.run("prune_arrival_bodies", before=now - BODIES_KEPT_MS)
    tx.run("prune_arrivals", before=now - ARRIVALS_KEPT_MS)


def _arrival(row: Row) -> ArrivalRecord:
    return ArrivalRecord._make([*row[:6], json.loads(row[6])])
