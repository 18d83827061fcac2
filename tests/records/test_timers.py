"""Timers in a store: what a firing writes, by a journal that writes when the test says so."""

import pytest

from ikigai_actors.errors import AgentDead, AgentNotFound, BadInput, TimerNotFound, TooManyTimers
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.mail.mail import MAIL, MAILBOX_CAPACITY, NOTICE, PROMPT
from ikigai_actors.records.mail.schedules import Appointment
from ikigai_actors.records.mail.timers import (
    MOST_TIMERS,
    CancelTimer,
    DueTimer,
    Fire,
    Fired,
    SetTimer,
    Timer,
    check_timer_id,
    every_timer,
    next_timers,
    timers_of,
)
from ikigai_actors.store import Store
from ikigai_actors.store.journal import Committed
from tests.kit.mailboxes import counts, every, fill, read
from tests.kit.trees import HOST
from tests.records.test_units import Desk

HOUR = 3_600_000

ONCE, HOURLY = Appointment(HOUR, None, "UTC"), Appointment(HOUR, "0 * * * *", "UTC")


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


def put(desk: Desk, to: str = "b", when: Appointment = ONCE, fires_as: str = NOTICE, sender: str | None = "b") -> Timer:
    verdict = desk.write(SetTimer(to, sender, "tea", when, 5, fires_as))["0"]
    assert isinstance(verdict, Committed)
    assert isinstance(verdict.value, Timer)
    return verdict.value


def first(desk: Desk) -> DueTimer:
    return desk.store.read(lambda tx: next_timers(tx, HOST, 9))[0]


def fire(desk: Desk, now: int, seen: DueTimer | None = None) -> list[str]:
    """Fire the next timer; returns the kinds and texts of the mails that it writes."""
    verdict = desk.write(Fire(seen or first(desk), now))["0"]
    assert isinstance(verdict, Committed)
    mails = verdict.value.mails if isinstance(verdict.value, Fired) else ()
    return [f"{mail.kind} {mail.body}" for mail in mails]


def test_a_timer_fires_once_whoever_has_seen_it(desk: Desk) -> None:
    timer = put(desk)
    assert (timer.id, timer.when) == (1, "1970-01-01 01:00 UTC")
    seen = first(desk)
    assert fire(desk, HOUR - 1) == []  # the clock was set back
    assert fire(desk, HOUR, seen) == ["notice tea"]
    assert fire(desk, HOUR, seen) == []
    assert counts(desk, "b") == (1, 1)
    assert desk.store.read(every_timer) == []


def test_a_schedule_goes_on_from_when_it_was_due_and_says_what_was_missed(desk: Desk) -> None:
    put(desk, when=HOURLY, fires_as=PROMPT)
    assert fire(desk, HOUR + 5) == ["prompt tea"]
    [timer] = desk.store.read(lambda tx: timers_of(tx, "b"))
    assert (timer.due_at, timer.latest, timer.missed) == (2 * HOUR, 1, 0)
    desk.store.write(lambda tx: tx.run("take_prompt", recipient="b", id=1, now=1, ends=0))
    assert fire(desk, 5 * HOUR) == ["prompt tea\n\n(Missed 3 times since 1970-01-01 02:00, UTC.)"]
    assert first(desk).due_at == 6 * HOUR


@pytest.mark.parametrize("fires_as", [NOTICE, PROMPT])
def test_while_the_latest_one_is_unread_no_other_one_is_added(desk: Desk, fires_as: str) -> None:
    put(desk, when=HOURLY, fires_as=fires_as)
    assert fire(desk, HOUR) == [f"{fires_as} tea"]
    assert fire(desk, 2 * HOUR) == fire(desk, 4 * HOUR) == []
    [timer] = desk.store.read(lambda tx: timers_of(tx, "b"))
    assert (timer.missed, timer.since) == (3, 2 * HOUR)
    if fires_as == NOTICE:
        read(desk, "b")
    else:
        desk.store.write(lambda tx: tx.run("take_prompt", recipient="b", id=1, now=1, ends=0))
    assert fire(desk, 5 * HOUR) == [f"{fires_as} tea\n\n(Missed 3 times since 1970-01-01 02:00, UTC.)"]
    assert desk.store.read(lambda tx: timers_of(tx, "b"))[0].missed == 0


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "a database each")
def test_a_delayed_mail_that_meets_a_full_mailbox_is_tried_again_and_its_sender_is_told_once(desk: Desk) -> None:
    put(desk, fires_as=MAIL, sender="a")
    fill(desk.store, "b", MAILBOX_CAPACITY)
    [event] = fire(desk, HOUR)
    assert "notice A delayed mail waits" in event
    assert [(mail.sender, mail.kind) for mail in every(desk.store, "a")] == [("b", "notice")]
    assert fire(desk, HOUR + 60_000) == []
    read(desk, "b")
    assert fire(desk, HOUR + 120_000) == ["mail tea"]
    assert every(desk.store, "b")[-1].sender == "a"
    assert counts(desk, "a") == (1, 1)


def test_what_a_dead_agent_has_sent_is_delivered_and_its_own_timers_end_with_it(desk: Desk) -> None:
    put(desk, fires_as=MAIL, sender="d")
    put(desk, "d", HOURLY, sender="d")
    seen = [timer for timer in desk.store.read(lambda tx: next_timers(tx, HOST, 9)) if timer.agent == "d"]
    desk.accepts(WriteDeath("d", HOST, "old age", 6))
    assert [(timer.agent_uuid, timer.id) for timer in desk.store.read(every_timer)] == [("b", 1)]
    assert fire(desk, HOUR, seen[0]) == []
    assert fire(desk, HOUR) == ["mail tea"]


def test_who_is_dead_or_nobody_gets_no_timer_and_sets_none(desk: Desk) -> None:
    desk.accepts(WriteDeath("d", HOST, "old age", 6))
    desk.refuses(SetTimer("d", None, "tea", ONCE, 7), AgentDead)
    desk.refuses(SetTimer("b", "d", "tea", ONCE, 7, MAIL), AgentDead)
    desk.refuses(SetTimer("nobody", None, "tea", ONCE, 7), AgentNotFound)
    for blank in ("", "  ", "x" * 70_000):
        with pytest.raises(BadInput, match="Expected a reminder"):
            SetTimer("b", None, blank, ONCE, 7)


def test_a_cancelled_timer_is_gone_and_its_number_is_not_given_again(desk: Desk) -> None:
    put(desk)
    seen = first(desk)
    desk.accepts(CancelTimer("b", 1, 9))
    assert fire(desk, HOUR, seen) == []
    assert put(desk).id == 2
    refusal = desk.refuses(CancelTimer("b", 1, 9), TimerNotFound)
    assert "Its timers are: 2." in str(refusal)
    for wrong in (0, -1, True, "1", 1.5):
        with pytest.raises(BadInput, match="from 1"):
            check_timer_id(wrong)  # type: ignore[arg-type]


def test_an_agent_has_a_hundred_timers_at_most(desk: Desk) -> None:
    for _ in range(MOST_TIMERS):
        put(desk)
    desk.refuses(SetTimer("b", None, "one more", ONCE, 7), TooManyTimers)
    fire(desk, HOUR)
    assert put(desk).id == MOST_TIMERS + 1


def test_a_host_sees_what_fires_next_among_the_agents_that_it_runs(desk: Desk) -> None:
    put(desk, "b", Appointment(9, None, "UTC"), sender=None)
    put(desk, "c", Appointment(7, None, "UTC"), sender=None)
    assert [timer.agent for timer in desk.store.read(lambda tx: next_timers(tx, HOST, 9))] == ["c", "b"]
    assert len(desk.store.read(lambda tx: next_timers(tx, HOST, 1))) == 1
    assert desk.store.read(lambda tx: next_timers(tx, "another", 9)) == []
