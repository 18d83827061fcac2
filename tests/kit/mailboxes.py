"""Mailboxes in a store, as short as a test wants them."""

from dataclasses import astuple

from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.mail import mail as mailbox
from ikigai_actors.records.mail.mail import MAIL, Mail, Mailbox, Read, Send, Taken
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.journal import Committed
from ikigai_actors.store.unit import LockedRows
from tests.kit.databases import sql
from tests.kit.trees import record
from tests.records.test_units import Desk

NOW = 77
"""When all of it happens."""


def send(recipient: str, sender: str | None, body: str = "hello") -> Send:
    return Send(recipient, sender, body, NOW)


def every(store: Store, recipient: str, sender: str | None = None) -> list[Mail]:
    return store.read(lambda tx: mailbox.latest(tx, recipient, sender))


def numbers(mails: tuple[Mail, ...] | list[Mail]) -> list[int]:
    return [mail.id for mail in mails]


def check(store: Store, recipient: str) -> Mailbox:
    return store.read(lambda tx: mailbox.unread_mailbox(tx, recipient))


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
        tx.append([(*astuple(mail), None, 0) for mail in mails], "mail")
        tx.run("count_mail", uuids=[recipient], mailed=count, unread=count)

    store.write(work)


def deliver(tx: Transaction, recipient: str, kind: str, body: str = "news") -> Mail:
    """Deliver in a transaction whose unit takes the lock by itself, as that of a death does."""
    locked = LockedRows(tx.run("lock_agents", uuids=[recipient], writers=[]))
    mail = mailbox.write_mail(tx, locked, recipient, None, body, NOW, kind)
    locked.settle(tx)
    return mail


def taken_in(tx: Transaction, recipient: str, limit: int) -> Taken:
    locked = LockedRows(tx.run("lock_agents", uuids=[recipient], writers=[]))
    taken = mailbox.take_mail(tx, locked, recipient, NOW, limit=limit)
    locked.settle(tx)
    return taken


def sound(desk: Desk) -> bool:
    """Whether fsck finds the mail and the counts in order."""
    return not [each for each in fsck.check(desk.store) if each.invariant in ("mail", "mail-id", "unread")]
