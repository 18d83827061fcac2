"""Races for a mailbox and for a document: two journals with a connection of their own, and other processes.

In some the order is forced: one transaction is held before its COMMIT until the other one waits for it.
"""

from collections.abc import Iterator
from itertools import groupby

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.errors import AgentDead, DocumentChanged
from ikigai_actors.records.documents import WriteVersion
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.mail import mail as mailbox
from ikigai_actors.records.mail.mail import Mail, Read, Send, Taken
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.journal import CommitResult, Committed, Refused
from tests.kit.databases import DEADLINE, printed, python, sql
from tests.kit.races import meet
from tests.kit.trees import HOST, record
from tests.records.test_races import Arena

ROUNDS = 300


@pytest.fixture
def arena(durable: str, request: pytest.FixtureRequest) -> Iterator[Arena]:
    admin = request.getfixturevalue("postgres_admin") if durable.startswith("postgres") else None
    arena = Arena(durable, admin)
    arena.add(("a", "root"), ("b", "root"), ("c", "root"))
    yield arena
    arena.close()


def every(store: Store, recipient: str) -> list[Mail]:
    return store.read(lambda tx: mailbox.latest(tx, recipient))


def value(verdict: CommitResult) -> object:
    assert isinstance(verdict, Committed), verdict
    return verdict.value


def in_order(mails: list[Mail]) -> bool:
    """Whether ids have no hole, and each sender's mails, which it numbered, come in the order of sending."""
    ids = [mail.id for mail in mails]
    by_sender = groupby(sorted(mails, key=lambda mail: (mail.sender or "", mail.id)), lambda mail: mail.sender)
    bodies = [[int(mail.body) for mail in of_one] for _, of_one in by_sender]
    return ids == list(range(1, len(ids) + 1)) and all(body == sorted(body) for body in bodies)


def sound(store: Store) -> bool:
    """Whether fsck finds mail and documents in order."""
    known = ("mail", "mail-id", "unread", "document", "version")
    return not [each for each in fsck.check(store) if each.invariant in known]


def test_of_two_mails_at_one_moment_each_gets_a_number_of_its_own(arena: Arena) -> None:
    arena.start()
    verdicts = meet(arena.one, Send("a", "b", "1", 5), arena.other, Send("a", "c", "2", 5), arena.waits)
    assert [mail.id for mail in map(value, verdicts) if isinstance(mail, Mail)] == [1, 2]
    assert (record(arena.store, "a").mailed, record(arena.store, "a").unread) == (2, 2)


def test_two_journals_let_loose_on_one_mailbox_leave_no_hole_and_keep_the_order(arena: Arena) -> None:
    waits = []
    for number in range(ROUNDS):
        waits += [
            arena.one.submit(Send("a", "b", str(number), 5)),
            arena.other.submit(Send("a", "c", str(number), 5)),
            arena.one.submit(Send("b", "a", str(number), 5)),  # the same two rows, named the other way round
        ]
    arena.start()
    assert all(isinstance(wait(), Committed) for wait in waits)
    assert len(every(arena.store, "a")) == 2 * ROUNDS
    assert in_order(every(arena.store, "a"))
    assert in_order(every(arena.store, "b"))
    assert sound(arena.store)


def test_of_two_readers_at_one_moment_one_gets_the_mail(arena: Arena) -> None:
    arena.start()
    arena.one.submit(Send("a", "b", "1", 5))()
    verdicts = meet(arena.one, Read("a", 6), arena.other, Read("a", 7), arena.waits)
    taken = [answer for answer in map(value, verdicts) if isinstance(answer, Taken)]
    assert [len(each.mails) for each in taken] == [1, 0]
    assert sound(arena.store)


@pytest.mark.slow("takes a tenth of a second")
def test_mail_that_is_read_while_it_is_sent_is_read_once(arena: Arena) -> None:
    sends = [arena.one.submit(Send("a", "b", str(number), 5)) for number in range(ROUNDS)]
    reads = [arena.other.submit(Read("a", 6, None, number % 3)) for number in range(ROUNDS)]
    arena.start()
    assert all(isinstance(wait(), Committed) for wait in sends)
    taken = [answer for answer in (value(wait()) for wait in reads) if isinstance(answer, Taken)]
    rest = value(arena.one.submit(Read("a", 6))())
    assert isinstance(rest, Taken)
    read = [mail.body for each in [*taken, rest] for mail in each.mails]
    assert read == [str(number) for number in range(ROUNDS)]
    assert sound(arena.store)


def test_a_mail_to_an_agent_that_dies_at_that_moment_is_refused(arena: Arena) -> None:
    arena.start()
    death, mail = meet(arena.one, WriteDeath("a", HOST, "test", 5), arena.other, Send("a", "b", "1", 5), arena.waits)
    assert isinstance(death, Committed)
    assert isinstance(mail, Refused)
    assert isinstance(mail.error, AgentDead)
    assert every(arena.store, "a") == []


def test_a_mail_that_came_before_a_death_is_kept(arena: Arena) -> None:
    arena.start()
    mail, death = meet(arena.other, Send("a", "b", "1", 5), arena.one, WriteDeath("a", HOST, "test", 5), arena.waits)
    assert isinstance(mail, Committed)
    assert isinstance(death, Committed)
    assert [mail.body for mail in every(arena.store, "a")] == ["1"]


SENDER = """
    import sys
    from ikigai_actors.records.mail.mail import Send
    from ikigai_actors.store import open_store
    from ikigai_actors.store.unit import write_alone

    store = open_store(sys.argv[1])
    for number in range(int(sys.argv[4])):
        write_alone(store, Send(sys.argv[2], sys.argv[3], str(number), 5))
    store.close()
    print("sent")
"""


def test_other_processes_send_beside_a_host_without_a_hole(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system:
        root, first, other = system.root, system.root.fork(), system.root.fork()
        processes = [python(SENDER, durable, root.uuid, sender.uuid, 60) for sender in (first, other)]
        futures = [root.aio.send(root, str(number)) for number in range(60)]
        assert [printed(process) for process in processes] == ["sent", "sent"]
        for future in futures:
            future.get(timeout=DEADLINE)
        mails = root.mails()
        assert len(mails) == 180
        assert in_order(mails)
        assert [mail.body for mail in root.read_mail(sender=first)] == [str(number) for number in range(60)]
        assert root.record.unread == 120


def test_of_two_writers_of_a_new_document_at_one_moment_the_second_gets_the_next_version(arena: Arena) -> None:
    arena.start()
    verdicts = meet(
        arena.one,
        WriteVersion("x.md", "one", "a", None, 5),
        arena.other,
        WriteVersion("x.md", "two", "b", None, 5),
        arena.waits,
    )
    assert verdicts == [Committed(1), Committed(2)]
    rows = arena.store.read(lambda tx: sql(tx, "SELECT version, body FROM documents ORDER BY version"))
    assert rows == [(1, "one"), (2, "two")]


def test_of_two_writers_that_expect_the_same_version_one_is_told_what_is_there(arena: Arena) -> None:
    arena.start()
    arena.one.submit(WriteVersion("x.md", "base", None, 0, 5))()
    first, second = meet(
        arena.one,
        WriteVersion("x.md", "one", "a", 1, 5),
        arena.other,
        WriteVersion("x.md", "two", "b", 1, 5),
        arena.waits,
    )
    assert first == Committed(2)
    assert isinstance(second, Refused)
    assert isinstance(second.error, DocumentChanged)
    assert second.error.version == 2


def test_writers_of_two_documents_in_opposite_orders_all_get_through(arena: Arena) -> None:
    waits = []
    for number in range(100):
        for writer, paths in ((arena.one, ("x.md", "y.md")), (arena.other, ("y.md", "x.md"))):
            waits += [writer.submit(WriteVersion(path, str(number), None, None, 5)) for path in paths]
    arena.start()
    assert all(isinstance(wait(), Committed) for wait in waits)
    assert sound(arena.store)
    assert arena.store.read(lambda tx: sql(tx, "SELECT COUNT(*), MAX(version) FROM documents")) == [(400, 200)]


COUNTER = """
    import sys
    from ikigai_actors.records.documents import Documents
    from ikigai_actors.errors import DocumentChanged
    from ikigai_actors.store import open_store
    from ikigai_actors.store.unit import write_alone

    store = open_store(sys.argv[1])
    documents = Documents(store, lambda unit, timeout: write_alone(store, unit), lambda: 5, lambda *asked: None)
    for _ in range(int(sys.argv[2])):
        while True:
            before = documents.read("count.md")
            try:
                documents.write("count.md", str(int(before.body) + 1), expect=before.version)
            except DocumentChanged:
                continue
            break
    store.close()
    print("counted")
"""


def test_no_update_of_concurrent_writers_is_lost_when_each_says_what_it_expects(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system:
        documents = system.documents
        documents.write("count.md", "0")
        processes = [python(COUNTER, durable, 40) for _ in range(2)]
        done = 0
        while done < 40:
            before = documents.read("count.md")
            try:
                documents.write("count.md", str(int(before.body) + 1), author=system.root, expect=before.version)
            except DocumentChanged:
                continue
            done += 1
        assert [printed(process) for process in processes] == ["counted", "counted"]
        assert (documents.read("count.md").body, documents.read("count.md").version) == ("120", 121)
        assert [version.version for version in documents.log("count.md")] == list(range(1, 122))
    store = open_store(durable)
    assert sound(store)
    store.close()
