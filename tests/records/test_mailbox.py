"""Mailboxes in a store: what is read, looked at and deleted, by a journal that writes when the test says so."""

from functools import partial

import pytest

from ikigai_actors.agent.builtin_calls.mail import CheckMail
from ikigai_actors.errors import (
    AgentNotFound,
    BadInput,
    MailNotFound,
    StoreConflict,
)
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.mail import mail as mailbox
from ikigai_actors.records.mail.mail import (
    EXIT,
    MAIL,
    PAGE,
    PERSON,
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
    check_mail_id,
)
from ikigai_actors.records.mail.prompts import KeepPrompt, Kept, NewPrompt
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.journal import Committed
from ikigai_actors.store.queries import query
from ikigai_actors.store.unit import lock, write_alone
from tests.kit.databases import sql
from tests.kit.faults import FaultyStore
from tests.kit.journals import Task
from tests.kit.mailboxes import NOW, check, counts, deliver, every, fill, numbers, read, send, sound, taken_in
from tests.kit.trees import HOST, Noting, append, ids, plant, says
from tests.records.test_units import Desk


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


@pytest.mark.parametrize("number", [0, -1, 2**63, True, "1", 1.0, None])
def test_what_no_mail_can_be_numbered_is_refused(number: int) -> None:
    with pytest.raises(BadInput, match="from 1"):
        check_mail_id(number)


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
    taken = read(desk, "b", PERSON)
    assert (numbers(taken.mails), taken.remaining) == ([2, 5], 1)
    assert (numbers(read(desk, "b", "d").mails), counts(desk, "b")) == ([], (5, 1))
    assert numbers(read(desk, "b").mails) == [3]


def test_a_read_within_a_limit_gives_whole_mails_and_always_one(desk: Desk) -> None:
    for time, (limit, count) in enumerate([(0, 1), (5, 1), (9, 1), (10, 2), (14, 2), (15, 3), (10**6, 3)]):
        desk.write(*[send("b", "a", "12345") for _ in range(3)])
        taken = read(desk, "b", limit=limit)
        assert (len(taken.mails), taken.remaining, counts(desk, "b")[1]) == (count, 3 - count, 3 - count), limit
        assert numbers(read(desk, "b").mails) == list(range(3 * time + count + 1, 3 * time + 4))


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


def test_a_size_of_its_own_decides_what_fits(desk: Desk) -> None:
    desk.write(*[send("b", "a", "x") for _ in range(5)])

    def work(tx: Transaction) -> Taken:
        locked = lock(tx, (Read("b", NOW),))
        taken = mailbox.take_mail(tx, locked, "b", NOW, limit=250, size=lambda mail: len(mail.body) + 99)
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
    assert every(desk.store, "b", PERSON) == []
    desk.refuses(Open("b", 2, NOW), MailNotFound)
    desk.refuses(Delete("b", 2), MailNotFound)
    assert numbers(read(desk, "b").mails) == [1, 3]
    assert desk.store.read(lambda tx: sql(tx, "SELECT read_at FROM mail WHERE id = 2")) == [(None,)]
    assert sound(desk)


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
    desk.accepts(WriteDeath("d", HOST, "test", 5))
    assert check(desk.store, "d").unread == 2
    assert [mail.body for mail in every(desk.store, "d", "b")] == ["two"]
    assert desk.store.read(lambda tx: mailbox.stored_mail(tx, "d", 1)).body == "one"
    assert [mail.body for mail in read(desk, "d").mails] == ["one", "two"]
    assert [mail.body for mail in every(desk.store, "d")] == ["one", "two"]


def test_mail_from_the_dead_is_found_by_its_sender(desk: Desk) -> None:
    desk.accepts(send("b", "d", "my last words"))
    desk.accepts(WriteDeath("d", HOST, "test", 5))
    assert [mail.body for mail in read(desk, "b", "d").mails] == ["my last words"]


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
    assert store.read(lambda tx: numbers(mailbox.latest(tx, "b", PERSON))) == [3, 6]
    assert every(store, "c") == []


def test_however_many_mails_there_are_two_statements_read_them(desk: Desk) -> None:
    fill(desk.store, "b", 2_000)
    statements: list[str] = []

    def work(tx: Transaction) -> Taken:
        locked = lock(tx, (Read("b", NOW),))
        taken = mailbox.take_mail(Noting(tx, statements), locked, "b", NOW)
        locked.settle(tx)
        return taken

    assert len(desk.store.write(work).mails) == 2_000
    assert statements == ["unread_mail", "mark_read"]


INDEXES = {
    "latest_mail_from": "mail_sender",
    "latest_mail_from_person": "mail_sender",
    "unread_mail": "mail_unread",
    "unread_senders": "mail_unread",
    "mark_read": "mail_unread",
}
"""By which index each of these statements finds its mail."""


def test_mail_is_found_by_index(desk: Desk) -> None:
    senders = ["a", "b", "c", "d", "root", None]
    on_server = desk.store.location.startswith("postgres")
    mails = [
        ("b", place + 1, senders[place % 6], MAIL, "text", 1, None if place > 19_990 else 5, None, 0)
        for place in range(20_000 if on_server else 20)  # SQLite plans without a look at them
    ]
    desk.store.write(lambda tx: tx.append(mails, "mail"))
    explain = "EXPLAIN QUERY PLAN"
    if on_server:
        desk.store.write(lambda tx: sql(tx, "ANALYZE mail"))
        explain = "EXPLAIN"
    for name, index in INDEXES.items():
        statement = query(name)
        for parameter, value in {
            ":recipient": "'b'", ":sender": "'a'", ":after": "0", ":most": "20", ":last": "19999", ":now": "5",
        }.items():  # fmt: skip
            statement = statement.replace(parameter, value)
        assert index in str(desk.store.read(partial(sql, statement=f"{explain} {statement}"))), name


def test_a_look_at_a_full_mailbox_says_how_much_it_leaves_out(store: Store) -> None:
    plant(store, a="root", b="root")
    fill(store, "a", 500)
    text = write_alone(store, CheckMail("a"))
    shown = text.count("\nmail ")
    assert text.startswith("500 unread: 500 from b")
    assert shown > 0
    assert text.endswith(f"\n({500 - shown} later ones)")


def test_a_prompt_that_is_kept_tells_of_those_before_it(desk: Desk) -> None:
    def prompt(body: str) -> Send:
        return Send("b", None, body, NOW, PROMPT)

    desk.write(prompt("from elsewhere"), send("b", "a", "a letter"))
    assert desk.write(KeepPrompt("b", "own", NOW, 0))["0"] == Committed(Kept(3, (NewPrompt("b", 1, "from elsewhere"),)))
    desk.write(prompt("from elsewhere, too"))
    assert desk.write(KeepPrompt("b", "own again", NOW, 3))["0"] == Committed(
        Kept(5, (NewPrompt("b", 4, "from elsewhere, too"),))
    )
