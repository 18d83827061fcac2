"""Mail: durable sends per second beside the database's own bulk insert into the same table; reading; looking for a
sender.

Each sender has one mail in flight: its commit sends the next. The bulk insert writes as many rows of the same mails,
ids and all, in transactions of as many rows as there are senders; it counts nothing in the recipients' rows. Reading:
one call, all that is unread, marked in the same durable commit. One send: see `benchmarks.sends`.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from statistics import median

from benchmarks import sends
from benchmarks.journal import Writers, writable
from benchmarks.measure import each_time, timed
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.records.mail import mail as mailbox
from ikigai_actors.records.mail.mail import MAIL, Read, Send
from ikigai_actors.store.base import Row as Values
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.journal import Journal
from ikigai_actors.store.unit import write_alone

SENDERS = 1_000

BODY = "The index on this column is used by two reports; both could use the primary key. Shall I drop it? Number {}."

NOW = 1_700_000_000_000

CHUNK = 20_000
"""Rows of one transaction when a mailbox is filled."""

LATEST = 20
"""Mails that a list shows."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Measure sending, reading and looking for a sender."""
    yield from sends.run(places, quick)
    yield from _sending(places, quick)
    yield from _reading(places, quick)
    yield from _filtering(places, quick)


def _sending(places: list[Place], quick: bool) -> Iterator[Row]:
    for place in places:
        # One mailbox takes 10,000 unread mails.
        for recipients, each in ((1, 10), (SENDERS, 10 if quick else 100)):
            runs = [
                (_through_journal(place, recipients, each), _by_bulk_insert(place, recipients, each))
                for _ in range(1 if quick else 3)
            ]
            ours, raw = (median(values) for values in zip(*runs, strict=True))
            yield Row("durable sends", "ikigai", place.name, recipients, "recipients", ours, "/s", "bulk insert", raw)


def _through_journal(place: Place, recipients: int, each: int) -> float:
    with ExitStack() as stack:
        _, store, host, uuids = writable(stack, place, SENDERS)
        host.keep(lambda error: None)
        journal = Journal(store, host.id, SystemClock())
        journal.start()
        units = {
            uuid: [Send(uuids[(place_in_row + 1) % recipients], uuid, BODY.format(count), NOW) for count in range(each)]
            for place_in_row, uuid in enumerate(uuids)
        }
        writers = Writers(journal, units)
        taken = timed(writers.run)[0]
        journal.close()
        unread = store.read(lambda tx: sum(mailbox.unread_mailbox(tx, uuid).unread for uuid in uuids[:recipients]))
        if writers.failed or unread != SENDERS * each:
            raise AssertionError(f"Expected {SENDERS * each} mails, got {unread}; {writers.failed[:1]}")
        return SENDERS * each / taken


def _by_bulk_insert(place: Place, recipients: int, each: int, senders: int = SENDERS) -> float:
    with ExitStack() as stack:
        database, _, _, uuids = writable(stack, place, senders)
        batches: list[list[Values]] = []
        sent = dict.fromkeys(uuids, 0)
        for count in range(each):
            batch: list[Values] = []
            for place_in_row, uuid in enumerate(uuids):
                to = uuids[(place_in_row + 1) % recipients]
                sent[to] += 1
                batch.append(_mail(to, sent[to], uuid, count))
            batches.append(batch)
        connection = database.connect()
        stack.callback(connection.close)

        def insert() -> None:
            for batch in batches:
                database.insert(connection, batch, "mail")

        return senders * each / timed(insert)[0]


def _reading(places: list[Place], quick: bool) -> Iterator[Row]:
    beside = 10_000 if quick else 1_000_000
    for place in places:
        for unread in (1_000, 10_000, 100_000):
            reading, checking = _read(place, unread, 0)
            yield Row("read all unread mail", "ikigai", place.name, unread, "unread", reading, "s")
            yield Row("check mail", "ikigai", place.name, unread, "unread", checking, "s")
        reading, checking = _read(place, 10_000, beside)
        yield Row("read 10,000 unread mails beside read ones", "ikigai", place.name, beside, "read", reading, "s")
        yield Row("check mail beside read ones", "ikigai", place.name, beside, "read", checking, "s")


def _read(place: Place, unread: int, read: int, senders: int = SENDERS) -> tuple[float, float]:
    """Seconds to read all that is unread, and to check for it."""
    with ExitStack() as stack:
        database, store, _, uuids = writable(stack, place, senders)
        _fill(store, uuids, read, unread)
        database.settle()
        checking = median(each_time(lambda: store.read(lambda tx: mailbox.unread_mailbox(tx, uuids[0])), 5))
        reading, taken = timed(lambda: write_alone(store, Read(uuids[0], NOW)))
        if len(taken.mails) != unread or taken.remaining:
            raise AssertionError(f"Expected {unread} mails, got {len(taken.mails)}")
        return reading, checking


def _filtering(places: list[Place], quick: bool) -> Iterator[Row]:
    for place in places:
        for count in (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000):
            _, every, some = _filter(place, count)
            head = ("ikigai", place.name, count, "mails in the mailbox")
            yield Row(f"find all mails of one of {SENDERS:,} senders", *head, every, "s")
            yield Row(f"find the latest {LATEST} of one of {SENDERS:,} senders", *head, some, "s")


def _filter(place: Place, count: int) -> tuple[int, float, float]:
    """How many mails one sender has sent, and the seconds to look for all of them, and for the latest."""
    with ExitStack() as stack:
        database, store, _, uuids = writable(stack, place, SENDERS)
        _fill(store, uuids, count, 0)
        database.settle()
        to, sender = uuids[0], uuids[SENDERS // 2]
        many = len(store.read(lambda tx: mailbox.latest(tx, to, sender)))
        if many != count // SENDERS:
            raise AssertionError(f"Expected {count // SENDERS} mails, got {many}")
        every = median(each_time(lambda: store.read(lambda tx: mailbox.latest(tx, to, sender)), 20))
        some = median(each_time(lambda: store.read(lambda tx: mailbox.latest(tx, to, sender, LATEST)), 20))
        return many, every, some


def _mail(recipient: str, number: int, sender: str, count: int, read_at: int | None = None) -> Values:
    """A mail as a row."""
    return recipient, number, sender, MAIL, BODY.format(count), NOW, read_at, None, 0


def _append(tx: Transaction, mails: list[Values]) -> None:
    tx.append(mails, "mail")


def _fill(store: Store, uuids: list[str], read: int, unread: int) -> None:
    """Put mails of all senders in turn into the first one's mailbox, those that were read first."""
    to = uuids[0]
    for start in range(0, read + unread, CHUNK):
        chunk = range(start, min(start + CHUNK, read + unread))
        mails = [
            _mail(to, place + 1, uuids[place % len(uuids)], place, NOW if place < read else None) for place in chunk
        ]
        store.write(partial(_append, mails=mails))
    store.write(lambda tx: tx.run("count_mail", uuids=[to], mailed=read + unread, unread=unread))
