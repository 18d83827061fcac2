"""Tables ``batches``, ``batch_members`` and ``seats``: requests that wait for a batch of their service.

    waiting     the row has the request. If it names a batch, the batch is sealed, and may be at the service already
    answered    ``result`` is the service's answer
    failed      the service has refused the request; ``result`` says why
    again       the service has not answered the request, and a further attempt waits
    direct      no batch answers the request: its agent asks the service directly

One host, which has the *seat* of a service, makes its batches. A batch is a row before it is sent. So a crash may leave
a row without the service's name for the batch, which is looked up before the batch is sent again. Each unit that writes
about a batch checks the seat. The key of a member is its agent and the head of the history that it sends. So a turn
that goes on after a crash finds the same row again, and an existing answer is not paid for again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.errors import Fenced
from ikigai_actors.providers.batches import MemberOutcome
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit

MEMBER_STATES = frozenset({"waiting", "answered", "failed", "again", "direct"})
"""The states of a request that waits for a batch, as in the module's table."""

BATCH_SECONDS = 60.0
"""The seconds for which requests are collected before they are sealed as a batch."""

BATCH_FULL = 1_000
"""The number of requests at which a batch is sealed at once."""

BATCH_BYTES = 100_000_000
"""The most bytes of the requests of a batch."""

BATCH_ATTEMPTS = 3
"""The most batches in which a request is sent without an answer. Then it is asked directly."""

BATCHES_KEPT_MS = 30 * 24 * 3600 * 1000
"""The milliseconds after which a prune deletes an ended batch and its members."""


class MemberKey(NamedTuple):
    """The key of a member, which is a request that waits for a batch of its service."""

    agent: str
    position: int
    attempt: int


class WaitingMember(NamedTuple):
    """A member that is not part of a batch yet: a row of ``unsealed_members``."""

    key: MemberKey
    asked_at: int
    due_at: int
    size: int


class OpenBatch(NamedTuple):
    """A batch without results yet: a row of ``open_batches``."""

    id: str
    service: str
    remote: str | None
    size: int
    made_at: int
    sent_at: int | None


class EndedMember(NamedTuple):
    """A member whose request has ended: a row of ``unread_members``."""

    key: MemberKey
    state: str
    result: str | None


class BatchAnswer(NamedTuple):
    """The state of a member's latest attempt, with the result."""

    state: str
    result: str | None
    is_sealed: bool


def seal_now(members: Sequence[WaitingMember], now: int) -> Sequence[WaitingMember]:
    """Return the members that a host should seal as one batch now; none if more requests are to be collected first.

    A member that seems to come from the future has waited for an unknown time, since the calendar was set back.
    """
    if not members:
        return ()
    oldest = min(member.asked_at for member in members)
    if len(members) < BATCH_FULL and abs(now - oldest) < BATCH_SECONDS * 1000:
        return ()
    chosen: list[WaitingMember] = []
    size = 0
    for member in members[:BATCH_FULL]:
        size += member.size
        if chosen and size > BATCH_BYTES:
            break
        chosen.append(member)
    return chosen


def seals_at(members: Sequence[WaitingMember]) -> int | None:
    """Return the time at which members are sealed as a batch, in milliseconds since 1970; None if there are none."""
    oldest = min((member.asked_at for member in members), default=None)
    return None if oldest is None else oldest + int(BATCH_SECONDS * 1000)


def member_state_after(outcome: MemberOutcome, attempt: int) -> str:
    """Return the new state of a member, given the outcome of this attempt."""
    if outcome.kind == "succeeded":
        return "answered"
    if outcome.kind == "refused":
        return "failed"
    if outcome.kind == "not taken":
        return "direct"
    return "again" if attempt < BATCH_ATTEMPTS else "direct"


def services_of_batches(tx: Transaction) -> list[str]:
    """Return the services for which requests wait."""
    return [service for (service,) in tx.run("services_of_batches")]


def unsealed_members(tx: Transaction, service: str) -> list[WaitingMember]:
    """Return the members of a service that are not part of a batch yet."""
    return [WaitingMember(MemberKey(*row[:3]), *row[3:]) for row in tx.run("unsealed_members", service=service)]


def open_batches(tx: Transaction, service: str) -> list[OpenBatch]:
    """Return the batches of a service without results, the oldest first."""
    return [OpenBatch(*row) for row in tx.run("open_batches", service=service)]


def batch_bodies(tx: Transaction, batch: str) -> list[tuple[MemberKey, bytes]]:
    """Return the request bodies of a batch, each with the key of its member."""
    return [(MemberKey(*row[:3]), bytes(row[3] or b"")) for row in tx.run("batch_bodies", batch=batch)]


def batch_members(tx: Transaction, batch: str) -> list[MemberKey]:
    """Return the keys of the members of a batch."""
    return [MemberKey(*row[:3]) for row in tx.run("members_of_batch", batch=batch)]


def waits_for_batch(tx: Transaction, batch: str) -> bool:
    """Return whether a member of a batch still waits for its result."""
    return bool(tx.run("waits_for_batch", batch=batch))


def known_batches(tx: Transaction, service: str) -> set[str]:
    """Return the names, given by the service, of the batches that have rows in this database."""
    return {remote for (remote,) in tx.run("known_batches", service=service)}


def due_members(tx: Transaction, service: str, now: int) -> list[MemberKey]:
    """Return the members that have waited for their longest time, and are to be asked directly."""
    return [MemberKey(*row) for row in tx.run("due_members", service=service, now=now)]


def next_due_member(tx: Transaction, service: str) -> int | None:
    """Return when the next member will have waited for its longest time, in milliseconds since 1970; None for none."""
    [(due,)] = tx.run("next_due_member", service=service)
    return None if due is None else int(due)


def latest_answer(tx: Transaction, agent: str, position: int) -> BatchAnswer | None:
    """Return the state of an agent's request for a batch; None if it never waited for one."""
    for _, state, batch, result, _ in tx.run("latest_member", agent=agent, position=position):
        return BatchAnswer(state, result, batch is not None)
    return None


def unread_members(tx: Transaction, host: str) -> list[EndedMember]:
    """Return the ended members of a host's agents whose results the agents have not received yet."""
    return [EndedMember(MemberKey(*row[:3]), *row[3:]) for row in tx.run("unread_members", host=host, most=BATCH_FULL)]


def prune_batches(tx: Transaction, now: int) -> None:
    """Delete batches with their members 30 days after their end."""
    tx.run("prune_members", before=now - BATCHES_KEPT_MS)
    tx.run("prune_batches", before=now - BATCHES_KEPT_MS)


@dataclass(frozen=True, slots=True)
class JoinBatch(Unit):
    """Let a request wait for a batch, or find the row that it already has; answered with a `BatchAnswer`."""

    agent: str
    position: int
    service: str
    body: bytes
    now: int
    due_at: int

    locks = ("agent",)

    def write(self, tx: Transaction, locked: LockedRows) -> BatchAnswer:
        attempt = 1
        for before, state, batch, result, read_at in tx.run("latest_member", agent=self.agent, position=self.position):
            if state != "failed" or read_at is None:
                if state != "waiting":
                    tx.run("read_member", agent=self.agent, position=self.position, attempt=before, now=self.now)
                return BatchAnswer(state, result, batch is not None)
            attempt = before + 1  # its turn ended with the error, and is gone on with
        key = {"agent": self.agent, "position": self.position, "attempt": attempt}
        tx.run("add_member", **key, service=self.service, now=self.now, due=self.due_at, body=self.body)
        return BatchAnswer("waiting", None, False)


@dataclass(frozen=True, slots=True)
class ReadMembers(Unit):
    """Record that the agents have received the results of these members."""

    keys: Sequence[MemberKey]
    now: int

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        for key in self.keys:
            tx.run("read_member", **key._asdict(), now=self.now)


@dataclass(frozen=True, slots=True)
class LeaveBatch(Unit):
    """Withdraw a member that is not part of a batch yet."""

    agent: str
    position: int

    locks = ("agent",)

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        tx.run("leave_batch", agent=self.agent, position=self.position)


@dataclass(frozen=True, slots=True)
class TakeSeat(Unit):
    """Take the seat of a service, which one host has; answered with whether this host has it now."""

    service: str
    host: str

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        return bool(tx.run("take_seat", service=self.service, host=self.host))


@dataclass(frozen=True, slots=True)
class SeatUnit(Unit):
    """The base of units that only the host with a service's seat may commit.

    Raises `Fenced` if another host has the seat.
    """

    service: str
    host: str

    def check_seat(self, tx: Transaction) -> None:
        """Raise `Fenced` if another host has the seat. Otherwise nobody can take it until COMMIT."""
        if not tx.run("take_seat", service=self.service, host=self.host):
            raise Fenced(f"Another host deals with the batches of {self.service}.")


@dataclass(frozen=True, slots=True)
class SealBatch(SeatUnit):
    """Make one batch of these members; answered with its size. Members that were withdrawn are left out."""

    id: str
    members: Sequence[MemberKey]
    now: int

    def write(self, tx: Transaction, locked: LockedRows) -> int:
        self.check_seat(tx)
        tx.run("add_batch", id=self.id, service=self.service, size=len(self.members), now=self.now)
        size = 0
        for key in self.members:
            size += len(tx.run("seal_member", batch=self.id, **key._asdict()))
        if size < len(self.members):
            tx.run("size_batch", id=self.id, size=size, now=self.now if not size else None)
        return size


@dataclass(frozen=True, slots=True)
class NameBatch(SeatUnit):
    """Record the name that a service has given a batch. Without a name, record that the batch is sent again."""

    id: str
    remote: str | None
    now: int

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        self.check_seat(tx)
        if self.remote is None:
            tx.run("resend_batch", id=self.id, now=self.now)
        else:
            tx.run("name_batch", id=self.id, remote=self.remote)


@dataclass(frozen=True, slots=True)
class EndBatch(SeatUnit):
    """Record the results of a batch. A member without a result counts as not answered."""

    id: str
    outcomes: Mapping[MemberKey, MemberOutcome]
    now: int

    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        self.check_seat(tx)
        for *key, _, state, _ in tx.run("members_of_batch", batch=self.id):
            if state == "waiting":
                member = MemberKey(*key)
                end_member(tx, member, self.outcomes.get(member, MemberOutcome("missing", "")), self.now)
        tx.run("end_batch", id=self.id, now=self.now)


@dataclass(frozen=True, slots=True)
class AskDirectly(SeatUnit):
    """Let the agents of these members send their requests directly, because they have waited long enough."""

    members: Sequence[MemberKey]

    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        self.check_seat(tx)
        for key in self.members:
            tx.run("end_member", **key._asdict(), state="direct", result=None)


def end_member(tx: Transaction, key: MemberKey, outcome: MemberOutcome, now: int) -> None:
    """Record the outcome of a member, and begin its next attempt if there is one."""
    state = member_state_after(outcome, key.attempt)
    if state == "again":
        tx.run("ask_again", **key._asdict(), now=now)
    fields: dict[str, Any] = key._asdict()
    tx.run("end_member", **fields, state=state, result=outcome.result or None)
