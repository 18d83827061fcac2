"""Parking: a program that only waits becomes a row in the database, until its wait is over.

    at work   parked 0, awake 1: the agent's host has an actor for it, and perhaps a frame of its function
    parked    parked n, awake 0: n awaited turns must still end, or the agent waits for one decision or time (n = 1). No
              boot looks at it. ``wake_at`` is the latest time to wake it; ``asked.awaited`` marks the awaited turns
    woken     parked -1, awake 1: the agent's host makes an actor, which goes on with the turn
    at work   the new actor's first unit is committed; the program's wait then reads from the rows what has ended

    event                             effect of the unit that writes the event
    end of an awaited turn            lowers ``parked`` by one; the last end wakes the agent
    ``wake_at`` is reached            the host's unit `WakeParked` wakes the agent
    INT                               wakes the agent: no actor exists that could be interrupted
    a decision, a command, a word     none: the process that delivers it has an actor made
    death                             the agent is parked no more

The unit that parks counts the missing ends under the lock of the agent's own row. Each end is written under that lock,
too. So an end comes either before the count, which includes it, or after it, and lowers the count. A signal locks the
tree, which the unit shares: an INT comes either before the unit, which is then refused, or after it, and wakes the
agent.

A crash leaves a row in one of these states, and none is forgotten: a starting host looks at agents with ``awake``, a
running host at due times and agents to be woken, and the units above change the others. An actor whose agent may be
parked commits `Unpark` before anything else.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.records.log.append import FencingToken, check_fence
from ikigai_actors.records.mail.asked import AskedTurn, Woken, turns_over
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, TreeLock, Unit


class Parked(NamedTuple):
    """The answer of a `Park` that has parked the agent."""

    wake_at: int | None
    """The time at which it is woken at the latest, in milliseconds since 1970; None for never."""


@dataclass(frozen=True, slots=True)
class Park(Unit):
    """Park an agent whose turn only waits. A parked agent needs no actor until its wait is over.

    Answered with `Parked`, or None if the wait is over already.
    """

    agent: str
    fence: FencingToken
    turns: tuple[AskedTurn, ...]
    """The turns for whose ends it waits; empty if it waits for a decision or for a time."""
    need: int
    """The number of these turns that must end."""
    wake_at: int | None
    """The time at which it is woken at the latest, in milliseconds since 1970; None for never."""

    locks = ("agent",)
    tree = TreeLock.SHARED
    concerns_others = True

    def write(self, tx: Transaction, locked: LockedRows) -> Parked | None:
        row = locked.existing(self.agent)
        check_fence(tx, row, self.fence)
        lack = self.need - len(turns_over(tx, self.agent, self.turns)) if self.turns else 1
        if lack < 1 or row.status != "running" or not row.turn:
            return None
        if not tx.run("park", uuid=self.agent, lack=lack, at=self.wake_at):
            return None
        for turn in self.turns:
            tx.run("await_asked", asker=self.agent, agent=turn.agent, prompt=turn.prompt)
        return Parked(self.wake_at)


class Unparked(NamedTuple):
    """The agent that an `Unpark` has released, as its answer."""

    agent: str


@dataclass(frozen=True, slots=True)
class Unpark(Unit):
    """End the parking of an agent, as the first unit of its new actor. The agent may have been woken already."""

    agent: str
    fence: FencingToken

    locks = ("agent",)
    concerns_others = True

    def write(self, tx: Transaction, locked: LockedRows) -> Unparked:
        check_fence(tx, locked.existing(self.agent), self.fence)
        tx.run("await_no_more", asker=self.agent)
        tx.run("unpark", uuid=self.agent)
        return Unparked(self.agent)


class DueWait(NamedTuple):
    """A parked agent, and the time at which its wait ends."""

    agent: str
    due_at: int
    """The end of the wait, in milliseconds since 1970."""


class WakeParked(Unit):
    """Wake a parked agent whose wait ends by a time, unless something else has woken it."""

    __slots__ = ("_wait",)

    concerns_others = True

    def __init__(self, wait: DueWait, now: int) -> None:
        self._wait = wait

    @property
    def touches(self) -> tuple[str, ...]:
        return (self._wait.agent,)

    def write(self, tx: Transaction, locked: LockedRows) -> Woken:
        tx.run("wake_parked", uuids=[self._wait.agent])
        return Woken(None)


def next_waits(tx: Transaction, host: str, most: int) -> Sequence[DueWait]:
    """Return the waits of a host's parked agents that end next, at most ``most`` of them."""
    return [DueWait(*row) for row in tx.run("next_waits", host=host, most=most)]


def waits_of_parked(tx: Transaction, uuids: Collection[str]) -> list[tuple[str, str, int]]:
    """Return the waits of those of these agents that are parked.

    Each has the waiting agent, an agent whose turn it awaits, and how many of its awaited turns may stay open.
    """
    return [(waiter, awaited, int(spare)) for waiter, awaited, spare in tx.run("waits_of_parked", uuids=list(uuids))]


def to_be_woken(tx: Transaction, host: str) -> list[str]:
    """Return the uuids of parked agents of a host whose waits are over."""
    return [uuid for (uuid,) in tx.run("to_be_woken", host=host)]
