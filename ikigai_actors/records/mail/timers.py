"""Timers: mail and prompts that agents get later, once or repeatedly.

    set          a row of table ``timers`` has the time of the next firing
    fires        one unit writes the mail, and the time of the next firing into the row; the last firing deletes the row
    cancelled    the row is deleted; the transaction of the agent's death deletes it, too

`Fire` has the time that its caller has read from the row. Under the lock of the agent it checks that this is unchanged.
So a timer fires once for each time, even if several hosts try or crash. Times that were missed while no host ran become
one firing, which says how many they were. While the latest mail or prompt of a schedule is unread, no further one is
added; the missed times are counted, and the next one says how many. If a delayed mail meets a full mailbox, it is tried
again every minute, and its sender gets one notice.

The agent that set a timer for another one may be dead when it fires: the mail is delivered.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ikigai_actors.arguments import check_count, is_span
from ikigai_actors.errors import MailboxFull, TimerNotFound, TooManyTimers
from ikigai_actors.frozen import maker
from ikigai_actors.records.agents.former import keep_timers
from ikigai_actors.records.mail.mail import MAIL, NOTICE, PROMPT, Mail, check_letter, write_mail
from ikigai_actors.records.mail.schedules import MOST_COUNTED, Appointment, appointment, clock_time, passed, with_delay
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.text import utc_time

MOST_TIMERS = 100
"""The most timers of an agent."""

FULL_RETRY = 60_000
"""The milliseconds after which a mail to a full mailbox is tried again."""


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer: a mail or prompt that an agent will get. A row of table ``timers``."""

    agent_uuid: str
    """The uuid of the agent that gets it."""
    id: int
    """The number among the timers of the agent, from 1; never used again."""
    due_at: int
    """The time when it fires next, in milliseconds since 1970 (UTC)."""
    schedule: str | None
    """The schedule: five fields of cron, or a period such as ``36h``; None if it fires once."""
    zone: str
    """The time zone of the schedule."""
    fires_as: str
    """The kind of mail that it fires: ``mail`` of its sender, ``notice`` (a reminder), or ``prompt``."""
    sender: str | None
    """The uuid of the agent that has set it; None for a person."""
    body: str
    """The text of the mail or prompt."""
    missed: int
    """How many times it was due without firing since its latest mail."""
    since: int | None
    """The first of these times, in milliseconds since 1970; None for none."""
    latest: int
    """The number of its latest mail in the agent's mailbox; 0 before the first."""
    notified: int
    """1 when its sender has got the notice that the mailbox is full; else 0."""
    created_at: int
    """The time when it was set, in milliseconds since 1970 (UTC)."""

    @property
    def due_time(self) -> datetime:
        """The time when the timer fires next, in UTC."""
        return utc_time(self.due_at)

    @property
    def when(self) -> str:
        """Return when the timer fires next, in its zone, with its schedule, as text for people."""
        due = f"{clock_time(self.due_at, self.zone)} {self.zone}"
        if self.schedule is None:
            return due
        return f"{due}, then {'every ' if is_span(self.schedule) else ''}{self.schedule}"


_timer = maker(Timer)


class DueTimer(NamedTuple):
    """The next timer of a host's agents to fire: a row of the query ``next_timers``."""

    agent: str
    id: int
    due_at: int
    sender: str | None


class Fired(NamedTuple):
    """The mail that a timer has sent when it fired."""

    mails: tuple[Mail, ...]
    """The mail, if there is one; otherwise perhaps a notice to the sender."""


def check_timer_id(number: int) -> int:
    """Return the number, or raise `BadInput` if it cannot be a timer's number."""
    return check_count(number, "the number of a timer", least=1)


def timers_of(tx: Transaction, agent: str) -> list[Timer]:
    """Return the timers of an agent, the next to fire first."""
    return [_timer(*row) for row in tx.run("timers_of", agent=agent)]


def every_timer(tx: Transaction) -> list[Timer]:
    """Return all timers, the next to fire first."""
    return [_timer(*row) for row in tx.run("timers")]


def next_timers(tx: Transaction, host: str, most: int) -> list[DueTimer]:
    """Return the next timers to fire, for the agents of a host."""
    return [DueTimer(*row) for row in tx.run("next_timers", host=host, most=most)]


class SetTimer(Unit):
    """Set a timer; answered with the `Timer`.

    Raises:
        AgentNotFound, AgentDead: there is no such living agent, or the sender is none.
        TooManyTimers: the agent has `MOST_TIMERS`.
    """

    __slots__ = ("_body", "_fires_as", "_now", "_sender", "_to", "_when", "touches")

    touches: tuple[str, ...]

    concerns_others = True

    def __init__(
        self, to: str, sender: str | None, body: str, when: Appointment, now: int, fires_as: str = NOTICE
    ) -> None:
        """Make the unit.

        Args:
            to: the uuid of the agent that gets the mail.
            sender: the uuid of the agent that sets it; None for a person.
            body: the text.
            when: the time or times at which it fires.
            now: milliseconds since 1970.
            fires_as: ``mail``, ``notice`` or ``prompt``.

        Raises:
            BadInput: the text cannot be sent.
        """
        self._to, self._sender, self._when, self._now, self._fires_as = to, sender, when, now, fires_as
        self._body = check_letter(body, {MAIL: "mail", PROMPT: "prompt"}.get(fires_as, "reminder"))
        self.touches = (to,) if sender is None else (to, sender)

    def write(self, tx: Transaction, locked: LockedRows) -> Timer:
        for uuid in self.touches:
            locked.living(uuid, ": it neither gets timers nor sets them")
        if tx.run("count_timers", agent=self._to)[0][0] >= MOST_TIMERS:
            raise TooManyTimers(
                f"Agent {self._to} has {MOST_TIMERS} timers, and no agent may have more. Cancel one, or let one fire.",
                self._to,
            )
        [(number,)] = tx.run("new_timer_id", agent=self._to)
        when = self._when
        tx.run(
            "add_timer",
            agent=self._to,
            id=number,
            due=when.due_at,
            schedule=when.schedule,
            zone=when.zone,
            fires_as=self._fires_as,
            sender=self._sender,
            body=self._body,
            now=self._now,
        )
        return _timer(*tx.run("timer", agent=self._to, id=number)[0])


@dataclass(frozen=True, slots=True)
class CancelTimer(Unit):
    """Cancel a timer. Raises `TimerNotFound`."""

    agent: str
    id: int
    now: int

    @property
    def touches(self) -> tuple[str, ...]:
        return (self.agent,)

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        keep_timers(tx, [self.agent], self.now, self.id)
        if not tx.run("cancel_timer", agent=self.agent, id=self.id):
            left = ", ".join(str(timer.id) for timer in timers_of(tx, self.agent)) or "none"
            raise TimerNotFound(
                f"Agent {self.agent} has no timer {self.id}: it has fired, or was cancelled. Its timers are: {left}.",
                self.agent,
            )


@dataclass(frozen=True, slots=True)
class Fire(Unit):
    """Fire a timer that was found to be due; answered with `Fired`, or None if the timer has changed meanwhile."""

    seen: DueTimer
    now: int

    concerns_others = True

    @property
    def touches(self) -> tuple[str, ...]:
        return (self.seen.agent,) if self.seen.sender is None else (self.seen.agent, self.seen.sender)

    def write(self, tx: Transaction, locked: LockedRows) -> Fired | None:
        seen = self.seen
        rows = tx.run("timer", agent=seen.agent, id=seen.id)
        if not rows or rows[0][2] != seen.due_at or self.now < seen.due_at:
            return None  # fired or cancelled meanwhile; or the clock was set back
        timer = _timer(*rows[0])
        if timer.schedule is None:
            return self._fire_once(tx, locked, timer)
        due = passed(timer.schedule, timer.zone, timer.due_at, self.now)
        if timer.latest and tx.run("is_unread", recipient=timer.agent_uuid, id=timer.latest):
            self._advance(tx, timer, due.due_at, timer.missed + due.times, timer.since or timer.due_at)
            return None
        more = int(due.times > MOST_COUNTED)  # nobody has counted how many more
        missed = timer.missed + due.times - 1 + more
        mail = self._mail(tx, locked, timer, missed, timer.since or timer.due_at)
        self._advance(tx, timer, due.due_at, 0, None, latest=mail.id)
        return Fired((mail,))

    def _fire_once(self, tx: Transaction, locked: LockedRows, timer: Timer) -> Fired:
        try:
            mail = self._mail(tx, locked, timer, 0, None)
        except MailboxFull as full:
            self._advance(tx, timer, self.now + FULL_RETRY, 0, None, notified=1)
            sender = None if timer.sender is None else locked.get(timer.sender)
            if timer.notified or sender is None or sender.status == "dead":
                return Fired(())
            text = f"A delayed mail waits, and is tried again every minute. {full}"
            return Fired((write_mail(tx, locked, sender.uuid, timer.agent_uuid, text, self.now, NOTICE),))
        self._advance(tx, timer, None, 0, None)
        return Fired((mail,))

    def _mail(self, tx: Transaction, locked: LockedRows, timer: Timer, missed: int, since: int | None) -> Mail:
        body = with_delay(timer.body, missed, since, timer.due_at, self.now, timer.zone)
        sender = None if timer.fires_as == PROMPT else timer.sender
        return write_mail(tx, locked, timer.agent_uuid, sender, body, self.now, timer.fires_as)

    def _advance(
        self,
        tx: Transaction,
        timer: Timer,
        due: int | None,
        missed: int,
        since: int | None,
        latest: int | None = None,
        notified: int = 0,
    ) -> None:
        """Write when the timer fires next; None means never again."""
        keep_timers(tx, [timer.agent_uuid], self.now, timer.id)
        if due is None:
            tx.run("end_timer", agent=timer.agent_uuid, id=timer.id)
            return
        tx.run(
            "advance_timer",
            agent=timer.agent_uuid,
            id=timer.id,
            due=due,
            missed=min(missed, MOST_COUNTED + 1),
            since=since,
            latest=timer.latest if latest is None else latest,
            notified=notified,
        )


def reminder(agent: str, text: str, now: int, *, prompt: bool, **when: Any) -> SetTimer:
    """Return the unit that sets a reminder for an agent. Raises `BadInput`.

    Args:
        agent: the uuid of the agent.
        text: the text of the reminder.
        now: milliseconds since 1970.
        prompt: whether it is a prompt, rather than mail.
        when: the further arguments of `appointment`.
    """
    return SetTimer(agent, agent, text, appointment(now, **when), now, PROMPT if prompt else NOTICE)
