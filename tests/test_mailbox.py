"""Mailboxes in a store: what is sent, refused, read and deleted, by a journal that writes when the test says so."""

import pytest

from ikigai_actors import fsck, mailbox
from ikigai_actors.deaths import Bury
from ikigai_actors.errors import (
    AgentDead,
    AgentNotFound,
    BadInput,
    IkigaiError,
    MailboxFull,
    MailNotFound,
    StoreConflict,
)
from ikigai_actors.journal import Committed
from ikigai_actors.locks import Locks
from ikigai_actors.mailbox import (
    BODY_LIMIT,
    CAPACITY,
    EXIT,
    MAIL,
    NOBODY,
    PAGE,
    PREVIEW_LENGTH,
    PREVIEWS,
    PROMPT,
    Delete,
    Mail,
    Mailbox,
    Open,
    Read,
    Send,
    Taken,
    check_body,
    check_mail_id,
)
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.queries import query
from ikigai_actors.units import Unit, lock, write_alone
from tests.databases import bury, sql
from tests.faults import FaultyStore
from tests.journals import Task
from tests.test_units import Desk
from tests.trees import HOST, append, ids, record, says

NOW = 77


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


def send(recipient: str, sender: str | None, body: str = "hello") -> Send:
    return Send(recipient, sender, body, NOW)


def every(store: Store, recipient: str, sender: str | None = None) -> list[Mail]:
    return store.read(lambda tx: mailbox.latest(tx, recipient, sender))


def numbers(mails: tuple[Mail, ...] | list[Mail]) -> list[int]:
    return [mail.id for mail in mails]


def check(store: Store, recipient: str) -> Mailbox:
    return store.read(lambda tx: mailbox.check(tx, recipient))


def read(desk: Desk, recipient: str, sender: str | None = None, limit: int | None = None) -> Taken:
    verdict = desk.write(Read(recipient, NOW, sender, limit))["0"]
    assert isinstance(verdict, Committed)
    assert isinstance(verdict.value, Taken)
    return verdict.value


def counts(desk: Desk, recipient: str) -> tuple[int, int]:
    """What the registry counts: mails ever sent, and unread ones."""
    row = record(desk.store, recipient)
    return row.mailed, row.unread


def fill(store: Store, recipient: str, count: int, sender: str | None = "b") -> None:
    """Put unread mail into a mailbox at once, behind what is there."""
    before = store.read(lambda tx: sql(tx, f"SELECT mailed FROM agents WHERE uuid = '{recipient}'"))[0][0]
    mails = [Mail(recipient, before + place, sender, MAIL, f"mail {place}", 1, None) for place in range(1, count + 1)]

    def work(tx: Transaction) -> None:
        tx.append(mails, "mail")
        tx.run("count_mail", uuids=[recipient], mailed=count, unread=count)

    store.write(work)


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


REFUSED: list[tuple[str, Send, type[IkigaiError], str]] = [
    ("unknown", send("nobody", "a"), AgentNotFound, "list of agents"),
    ("dead", send("d", "a"), AgentDead, "takes no mail"),
    ("unknown sender", send("b", "nobody"), AgentNotFound, "nobody"),
    ("dead sender", send("b", "d"), AgentDead, "sends no mail"),
    ("full", send("c", "a"), MailboxFull, "10,000 unread"),
]


@pytest.mark.parametrize(("unit", "error", "told"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_cannot_be_sent_is_a_distinct_error_and_nothing_is_stored(
    desk: Desk, unit: Send, error: type[IkigaiError], told: str
) -> None:
    bury(desk.store, "d")
    fill(desk.store, "c", CAPACITY)
    before = [record(desk.store, uuid) for uuid in ("root", "a", "b", "c", "d")]
    assert told in str(desk.refuses(unit, error))
    assert [record(desk.store, uuid) for uuid in ("root", "a", "b", "c", "d")] == before
    assert desk.store.read(lambda tx: sql(tx, "SELECT COUNT(*) FROM mail WHERE kind = 'mail'")) == [(CAPACITY,)]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("", "blank"),
        (" \n\t", "blank"),
        ("x" * (BODY_LIMIT + 1), "65,537"),
        ("é" * (BODY_LIMIT // 2 + 1), "65,538"),
        ("a\0b", "NUL"),
        ("\ud800", "surrogate"),
    ],
)
def test_a_body_that_cannot_be_sent_says_why(body: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        send("b", "a", body)


def test_a_body_may_be_as_long_as_the_limit_in_bytes(desk: Desk) -> None:
    for body in ("x" * BODY_LIMIT, "é" * (BODY_LIMIT // 2), "茶" * (BODY_LIMIT // 3)):
        desk.accepts(send("b", "a", check_body(body)))
        assert every(desk.store, "b")[-1].body == body


@pytest.mark.parametrize("number", [0, -1, 2**63, True, "1", 1.0, None])
def test_what_no_mail_can_be_numbered_is_refused(number: int) -> None:
    with pytest.raises(BadInput, match="from 1"):
        check_mail_id(number)


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


def test_a_mailbox_is_full_at_the_limit_has_room_after_a_read_and_takes_exits_all_the_same(desk: Desk) -> None:
    fill(desk.store, "b", CAPACITY - 1)
    desk.accepts(send("b", "a", "the last one"))
    desk.refuses(send("b", None), MailboxFull)
    desk.accepts(Task(lambda tx: deliver(tx, "b", EXIT)))
    assert counts(desk, "b") == (CAPACITY + 1, CAPACITY + 1)
    read(desk, "b", "b", limit=1)
    desk.refuses(send("b", "a"), MailboxFull)  # the exit counts, too
    read(desk, "b", "b", limit=1)
    desk.accepts(send("b", "a"))


def deliver(tx: Transaction, recipient: str, kind: str, body: str = "news") -> Mail:
    """Deliver in a transaction whose unit takes the lock by itself, as that of a death does."""
    locked = Locks(tx.run("lock_agents", uuids=[recipient]))
    mail = mailbox.deliver(tx, locked, recipient, None, body, NOW, kind)
    locked.settle(tx)
    return mail


def test_a_read_gives_the_unread_oldest_first_and_marks_them(desk: Desk) -> None:
    desk.write(send("b", "a", "one"), send("b", "c", "two"), send("b", "a", "three"))
    taken = read(desk, "b")
    assert [mail.body for mail in taken.mails] == ["one", "two", "three"]
    assert {mail.read_at for mail in taken.mails} == {NOW}
    assert taken.remaining == 0
    assert every(desk.store, "b") == list(taken.mails)
    assert (counts(desk, "b"), read(desk, "b")) == ((3, 0), Taken((), 0))


def test_a_read_by_sender_leaves_the_others_unread(desk: Desk) -> None:
    desk.write(send("b", "a"), send("b", None), send("b", "c"), send("b", "a"), send("b", None))
    taken = read(desk, "b", "a")
    assert (numbers(taken.mails), taken.remaining) == ([1, 4], 3)
    taken = read(desk, "b", NOBODY)
    assert (numbers(taken.mails), taken.remaining) == ([2, 5], 1)
    assert (numbers(read(desk, "b", "d").mails), counts(desk, "b")) == ([], (5, 1))
    assert numbers(read(desk, "b").mails) == [3]


@pytest.mark.parametrize(("limit", "given"), [(0, 1), (5, 1), (9, 1), (10, 2), (14, 2), (15, 3), (10**6, 3)])
def test_a_read_within_a_limit_gives_whole_mails_and_always_one(desk: Desk, limit: int, given: int) -> None:
    desk.write(*[send("b", "a", "12345") for _ in range(3)])
    taken = read(desk, "b", limit=limit)
    assert (len(taken.mails), taken.remaining, counts(desk, "b")[1]) == (given, 3 - given, 3 - given)
    assert numbers(read(desk, "b").mails) == list(range(given + 1, 4))


def test_a_read_within_a_limit_goes_on_from_page_to_page(desk: Desk) -> None:
    fill(desk.store, "b", 2 * PAGE + 10, "a")
    taken = read(desk, "b", "a", limit=10**9)
    assert (numbers(taken.mails), taken.remaining) == (list(range(1, 2 * PAGE + 11)), 0)


def test_a_larger_unit_reads_mail_and_shows_it_in_the_log_or_does_neither(desk: Desk) -> None:
    desk.write(send("b", "a", "one"), send("b", "a", "two"))

    def show(position: int) -> Task:
        return Task(lambda tx: taken_in(tx, "b", 3).mails, messages=says("b", position))

    desk.accepts(show(1))
    desk.accepts(append("a", 1))
    assert (counts(desk, "b"), ids(desk.store, "b")) == ((2, 1), [1])
    assert isinstance(desk.write(show(1)).error("0"), StoreConflict)  # the log refuses: nothing was read
    assert (counts(desk, "b"), numbers(read(desk, "b").mails)) == ((2, 1), [2])


def taken_in(tx: Transaction, recipient: str, limit: int) -> Taken:
    locked = Locks(tx.run("lock_agents", uuids=[recipient]))
    taken = mailbox.take(tx, locked, recipient, NOW, limit=limit)
    locked.settle(tx)
    return taken


def test_a_size_of_its_own_decides_what_fits(desk: Desk) -> None:
    desk.write(*[send("b", "a", "x") for _ in range(5)])

    def work(tx: Transaction) -> Taken:
        locked = lock(tx, (Read("b", NOW),))
        taken = mailbox.take(tx, locked, "b", NOW, limit=250, size=lambda mail: len(mail.body) + 99)
        locked.settle(tx)
        return taken

    assert numbers(desk.store.write(work).mails) == [1, 2]


@pytest.mark.parametrize("committed", [True, False])
def test_a_mail_is_there_once_when_the_connection_broke_during_commit(store: Store, committed: bool) -> None:
    faults = FaultyStore(store)
    desk = Desk(faults)
    faults.breaks_during_commit(committed=committed)
    desk.accepts(send("b", "a", "once"))
    assert [(mail.id, mail.body) for mail in every(store, "b")] == [(1, "once")]
    faults.breaks_during_commit(committed=committed)
    assert numbers(read(desk, "b").mails) == [1]
    assert counts(desk, "b") == (1, 0)


def test_a_prompt_on_its_way_has_an_id_and_is_no_mail(desk: Desk) -> None:
    desk.accepts(send("b", "a"))
    desk.accepts(Task(lambda tx: deliver(tx, "b", PROMPT)))
    desk.accepts(send("b", "a"))
    assert (counts(desk, "b"), check(desk.store, "b").unread) == ((3, 2), 2)
    assert numbers(every(desk.store, "b")) == numbers(every(desk.store, "b", "a")) == [1, 3]
    assert every(desk.store, "b", NOBODY) == []
    desk.refuses(Open("b", 2, NOW), MailNotFound)
    desk.refuses(Delete("b", 2), MailNotFound)
    assert numbers(read(desk, "b").mails) == [1, 3]
    assert desk.store.read(lambda tx: sql(tx, "SELECT read_at FROM mail WHERE id = 2")) == [(None,)]
    assert sound(desk)


def sound(desk: Desk) -> bool:
    """Whether fsck finds the mail and the counts in order."""
    return not [each for each in fsck.check(desk.store) if each.invariant in ("mail", "mail-id", "unread")]


def test_an_exit_is_read_like_other_mail(desk: Desk) -> None:
    desk.accepts(Task(lambda tx: deliver(tx, "b", EXIT, "c is dead")))
    [preview] = check(desk.store, "b").previews
    assert (preview.kind, preview.sender, preview.text) == (EXIT, None, "c is dead")
    assert [mail.kind for mail in read(desk, "b").mails] == [EXIT]


def test_one_mail_is_opened_by_its_number_and_marked_once(desk: Desk) -> None:
    desk.write(send("b", "a", "one"), send("b", "a", "two"))
    opened = desk.write(Open("b", 2, 88))["0"]
    assert opened == Committed(Mail("b", 2, "a", MAIL, "two", NOW, 88))
    assert counts(desk, "b") == (2, 1)
    assert desk.write(Open("b", 2, 99))["0"] == opened
    assert counts(desk, "b") == (2, 1)
    assert "no mail 3" in str(desk.refuses(Open("b", 3, 1), MailNotFound))
    desk.refuses(Open("nobody", 1, 1), AgentNotFound)


def test_deleting_gives_no_number_again_and_counts(desk: Desk) -> None:
    desk.write(send("b", "a"), send("b", "a"), send("b", "a"))
    read(desk, "b", limit=1)
    for number in (1, 3):
        desk.accepts(Delete("b", number))
        assert "never sent" in str(desk.refuses(Delete("b", number), MailNotFound))
    assert counts(desk, "b") == (3, 1)
    desk.accepts(send("b", "a"))
    assert numbers(every(desk.store, "b")) == [2, 4]
    desk.refuses(Delete("nobody", 1), AgentNotFound)
    assert sound(desk)


def test_the_mail_of_the_dead_stays_readable(desk: Desk) -> None:
    desk.write(send("d", "a", "one"), send("d", "b", "two"))
    desk.accepts(Bury("d", HOST, "test", 5))
    assert check(desk.store, "d").unread == 2
    assert [mail.body for mail in every(desk.store, "d", "b")] == ["two"]
    assert desk.store.read(lambda tx: mailbox.one(tx, "d", 1)).body == "one"
    assert [mail.body for mail in read(desk, "d").mails] == ["one", "two"]
    assert [mail.body for mail in every(desk.store, "d")] == ["one", "two"]


def test_mail_from_the_dead_is_found_by_its_sender(desk: Desk) -> None:
    desk.accepts(send("b", "d", "my last words"))
    desk.accepts(Bury("d", HOST, "test", 5))
    assert [mail.body for mail in read(desk, "b", "d").mails] == ["my last words"]


def test_what_comes_after_a_death_in_the_same_batch_is_refused(desk: Desk) -> None:
    answers = desk.write(send("d", "a"), Bury("d", HOST, "test", 5), send("d", "a"), send("a", "d"), send("b", "a"))
    assert isinstance(answers["0"], Committed)
    assert [type(answers.error(name)) for name in ("2", "3")] == [AgentDead, AgentDead]
    assert isinstance(answers["4"], Committed)
    assert (numbers(every(desk.store, "d")), every(desk.store, "a")) == ([1], [])


def test_a_check_counts_by_sender_and_previews_the_oldest(desk: Desk) -> None:
    assert check(desk.store, "b") == Mailbox(0, {}, ())
    desk.write(send("b", "a", "  one\n\ntwo  "), send("b", None, "x" * 1000), send("b", "a", "three"))
    box = check(desk.store, "b")
    assert (box.unread, list(box.senders.items())) == (3, [("a", 2), (None, 1)])
    assert [preview.text for preview in box.previews] == ["one two", "x" * (PREVIEW_LENGTH - 1) + "…", "three"]
    assert counts(desk, "b") == (3, 3)
    fill(desk.store, "b", PREVIEWS)
    box = check(desk.store, "b")
    assert (box.unread, [preview.id for preview in box.previews]) == (PREVIEWS + 3, list(range(1, PREVIEWS + 1)))


def test_the_latest_mail_is_listed_oldest_first(desk: Desk) -> None:
    desk.write(*[send("b", sender) for sender in ("a", "c", None, "a", "c", None, "a")])
    read(desk, "b", limit=3)
    store = desk.store
    assert store.read(lambda tx: numbers(mailbox.latest(tx, "b", most=3))) == [5, 6, 7]
    assert store.read(lambda tx: numbers(mailbox.latest(tx, "b", "a", 2))) == [4, 7]
    assert store.read(lambda tx: numbers(mailbox.latest(tx, "b", NOBODY))) == [3, 6]
    assert every(store, "c") == []


def test_a_client_writes_the_same_units_in_transactions_of_its_own(desk: Desk) -> None:
    write_alone(desk.store, send("b", "a", "one"))
    assert write_alone(desk.store, send("b", None, "two")) == Mail("b", 2, None, MAIL, "two", NOW, None)
    with pytest.raises(AgentNotFound):
        write_alone(desk.store, send("nobody", None))
    assert (numbers(read(desk, "b").mails), counts(desk, "b")) == ([1, 2], (2, 0))


@pytest.mark.parametrize("unit", [Read("nobody", 1), Send("b", "a", "x", 1)])
def test_a_unit_that_changes_no_tree_shares_its_transaction(unit: Unit) -> None:
    assert (unit.alone, unit.changes_tree) == (False, False)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("latest_mail_from", "mail_sender"),
        ("latest_mail_from_nobody", "mail_sender"),
        ("unread_mail", "mail_unread"),
        ("unread_senders", "mail_unread"),
    ],
)
def test_mail_is_found_by_index(desk: Desk, name: str, index: str) -> None:
    senders = ["a", "b", "c", "d", "root", None]
    mails = [
        Mail("b", place + 1, senders[place % 6], MAIL, "text", 1, None if place > 19_990 else 5)
        for place in range(20_000)
    ]
    desk.store.write(lambda tx: tx.append(mails, "mail"))
    statement = query(name)
    for parameter, value in {
        ":recipient": "'b'", ":sender": "'a'", ":after": "0", ":most": "20",
    }.items():  # fmt: skip
        statement = statement.replace(parameter, value)
    if desk.store.location.startswith("postgres"):
        desk.store.write(lambda tx: sql(tx, "ANALYZE mail"))
        plan = desk.store.read(lambda tx: sql(tx, f"EXPLAIN {statement}"))
    else:
        plan = desk.store.read(lambda tx: sql(tx, f"EXPLAIN QUERY PLAN {statement}"))
    assert index in str(plan)
