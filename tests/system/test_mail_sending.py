"""Mail that is sent, or refused, by a journal that writes when the test says so."""

import pytest

from ikigai_actors.errors import (
    AgentDead,
    AgentNotFound,
    BadInput,
    MailboxFull,
    StoreConflict,
)
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.mail.mail import (
    EXIT,
    MAIL_LIMIT,
    Mail,
    Read,
    Send,
    check_letter,
)
from ikigai_actors.store import Store
from ikigai_actors.store.journal import Committed
from ikigai_actors.store.unit import TreeLock, Unit
from tests.kit.journals import Task
from tests.kit.mailboxes import NOW, counts, deliver, every, fill, numbers, read, send
from tests.kit.trees import HOST, says
from tests.records.test_units import Desk


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


def test_a_mail_is_answered_with_its_row_and_counted(desk: Desk) -> None:
    verdict = desk.write(send("b", "a", "tea"), send("b", None, "milk"))
    first, second = Mail("b", 1, "a", "mail", "tea", NOW, None), Mail("b", 2, None, "mail", "milk", NOW, None)
    assert (verdict["0"], verdict["1"]) == (Committed(first), Committed(second))
    assert every(desk.store, "b") == [first, second]
    assert counts(desk, "b") == (2, 2)
    assert counts(desk, "a") == (0, 0)


def test_ids_count_per_recipient_within_a_batch_and_from_batch_to_batch(desk: Desk) -> None:
    desk.write(send("b", "a"), send("c", "a"), send("b", "d"), send("c", None), send("b", "a"))
    desk.write(send("c", "b"), send("b", "b"))
    assert [(mail.id, mail.sender) for mail in every(desk.store, "b")] == [(1, "a"), (2, "d"), (3, "a"), (4, "b")]
    assert [(mail.id, mail.sender) for mail in every(desk.store, "c")] == [(1, "a"), (2, None), (3, "b")]
    assert (counts(desk, "b"), counts(desk, "c")) == ((4, 4), (3, 3))


def test_a_thousand_mails_in_one_transaction_keep_their_order(desk: Desk) -> None:
    answers = desk.write(*[send("bc"[place % 2], "a", str(place)) for place in range(1000)])
    assert all(isinstance(answers[str(place)], Committed) for place in range(1000))
    assert [mail.body for mail in every(desk.store, "b")] == [str(place) for place in range(0, 1000, 2)]
    assert (counts(desk, "b"), counts(desk, "c")) == ((500, 500), (500, 500))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "blank"),
        (" \n\t", "blank"),
        ("x" * (MAIL_LIMIT + 1), "65,537"),
        ("é" * (MAIL_LIMIT // 2 + 1), "65,538"),
        ("a\0b", "NUL"),
        ("\ud800", "surrogate"),
    ],
)
def test_a_body_that_cannot_be_sent_says_why(body: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        send("b", "a", body)


def test_a_body_may_be_as_long_as_the_limit_in_bytes(desk: Desk) -> None:
    for body in ("x" * MAIL_LIMIT, "é" * (MAIL_LIMIT // 2), "茶" * (MAIL_LIMIT // 3)):
        desk.accepts(send("b", "a", check_letter(body)))
        assert every(desk.store, "b")[-1].body == body


def test_a_refused_mail_leaves_no_hole_in_the_ids_of_its_batch(desk: Desk) -> None:
    answers = desk.write(send("b", "a"), send("nobody", "a"), send("b", "nobody"), send("b", "c"))
    assert isinstance(answers.error("1"), AgentNotFound)
    assert isinstance(answers.error("2"), AgentNotFound)
    assert numbers(every(desk.store, "b")) == [1, 2]


def test_a_batch_with_a_failing_unit_runs_again_and_each_mail_is_there_once(desk: Desk) -> None:
    failing = Task(touches=("a",), messages=says("a", 1, 1))
    answers = desk.write(send("b", "a", "one"), failing, send("b", "c", "two"))
    assert isinstance(answers.error("1"), StoreConflict)
    assert [(mail.id, mail.body) for mail in every(desk.store, "b")] == [(1, "one"), (2, "two")]
    assert counts(desk, "b") == (2, 2)


def test_a_mailbox_is_full_at_the_limit_has_room_after_a_read_and_takes_exits_all_the_same(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ikigai_actors.records.mail.mail.MAILBOX_CAPACITY", 20)
    fill(desk.store, "b", 19)
    desk.accepts(send("b", "a", "the last one"))
    desk.refuses(send("b", None), MailboxFull)
    desk.accepts(Task(lambda tx: deliver(tx, "b", EXIT)))
    assert counts(desk, "b") == (21, 21)
    read(desk, "b", "b", limit=1)
    desk.refuses(send("b", "a"), MailboxFull)  # the exit counts, too
    read(desk, "b", "b", limit=1)
    desk.accepts(send("b", "a"))


def test_what_comes_after_a_death_in_the_same_batch_is_refused(desk: Desk) -> None:
    answers = desk.write(
        send("d", "a"), WriteDeath("d", HOST, "test", 5), send("d", "a"), send("a", "d"), send("b", "a")
    )
    assert isinstance(answers["0"], Committed)
    assert [type(answers.error(name)) for name in ("2", "3")] == [AgentDead, AgentDead]
    assert isinstance(answers["4"], Committed)
    assert (numbers(every(desk.store, "d")), every(desk.store, "a")) == ([1], [])


@pytest.mark.parametrize("unit", [Read("nobody", 1), Send("b", "a", "x", 1)])
def test_a_unit_that_changes_no_tree_shares_its_transaction(unit: Unit) -> None:
    assert (unit.alone, unit.tree) == (False, TreeLock.NONE)
