"""Heartbeats of agents in a turn, and the unit that notifies a supervisor, once a turn, when they stop.

The row has the turn of the notice, so it is not sent again after a restart or by another host.
"""

from collections.abc import Collection
from dataclasses import dataclass

from ikigai_actors.records.hosts.host_signs import PublishedSign, published_signs
from ikigai_actors.records.mail.mail import NOTICE, Mail, write_mail
from ikigai_actors.records.outbox.events import TURN_STUCK, PostedEvent, post
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.unit import Addressed, LockedRows, Unit, write_alone

LATELY = 3
"""The number of seconds that `Sign.tokens` covers."""


@dataclass(frozen=True, slots=True)
class Sign:
    """The latest heartbeat of an agent in a turn."""

    seconds: float
    """The seconds since its latest heartbeat: a piece of a reply, the start or end of a tool call, or a commit. For an
    agent of another process, as its host published it within the last seconds.
    """
    tokens: int | None = None
    """The approximate number of tokens of a reply within the last `LATELY` seconds; None when another process runs the
    agent and has not published it recently.
    """

    @property
    def rate(self) -> float:
        """Return the approximate number of tokens of a reply a second; 0 when it is not known."""
        return (self.tokens or 0) / LATELY

    @property
    def is_silent(self) -> bool:
        """Return whether the agent has sent no heartbeat within the time that `tokens` covers."""
        return self.seconds >= LATELY


def latest_signs(tx: Transaction) -> dict[str, Sign]:
    """Return the latest heartbeats of agents in a turn, by uuid, from messages and from the rows of hosts."""
    published, signs = published_signs(tx), dict[str, Sign]()
    for uuid, turn, written, now in tx.run("latest_signs"):
        sign = published.get((uuid, turn), PublishedSign(turn, written, None))
        signs[uuid] = Sign(max(0, now - max(written, sign.at)) / 1000, sign.tokens)
    return signs


class ReportStuck(Addressed):
    """Notify the supervisor of an agent that sends no heartbeat; answered with the `Mail`, or None.

    Nothing is written when the turn is over, there was a notice about it already, or no supervisor is alive.
    """

    concerns_others = True

    def __init__(self, agent: str, turn: int, text: str, now: int) -> None:
        """Make the unit.

        Args:
            agent: the agent, by uuid.
            turn: the id of the message that opened the turn.
            text: the text for its supervisor.
            now: milliseconds since 1970.
        """
        self._agent, self._turn, self._text, self._now = agent, turn, text, now
        self._supervisor: str | None = None

    def look_up(self, tx: Transaction) -> None:
        rows = tx.run("turn_reported", uuid=self._agent)
        self._supervisor = rows[0][0] if rows else None

    @property
    def touches(self) -> tuple[str, ...]:
        return (self._agent,) if self._supervisor is None else (self._agent, self._supervisor)

    def write(self, tx: Transaction, locked: LockedRows) -> Mail | None:
        rows = tx.run("turn_reported", uuid=self._agent)
        hearer = locked.get(self._supervisor or "")
        if hearer is None or hearer.status == "dead" or rows != [(hearer.uuid, self._turn, rows[0][2])]:
            return None  # it has another supervisor now, or ended its turn: the watch looks again
        if rows[0][2] == self._turn:
            return None
        tx.run("report_turn", uuid=self._agent, turn=self._turn)
        post(tx, locked, PostedEvent(TURN_STUCK, self._agent, self._turn, f"t{self._turn}", self._now))
        return write_mail(tx, locked, hearer.uuid, self._agent, self._text, self._now, NOTICE)


@dataclass(frozen=True, slots=True)
class LeaveCutOff(Unit):
    """Mark the turns of these agents as cut off, because their host does not resume them.

    Agents that belong to another host meanwhile stay unchanged.
    """

    host: str
    agents: Collection[str]
    now: int

    alone = True

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        locked.lock(tx, self.agents)
        left = [row for row in locked.values() if row.owner == self.host and row.turn]
        tx.run("leave_cut_off", uuids=[row.uuid for row in left])
        for row in left:
            post(tx, locked, PostedEvent(TURN_STUCK, row.uuid, row.turn, f"t{row.turn}", self.now))


def leave_cut_off(store: Store, host: str, agents: Collection[str], now: int) -> None:
    """Mark the turns of these agents of a host as cut off, before their actors act."""
    if agents:
        write_alone(store, LeaveCutOff(host, agents, now))
