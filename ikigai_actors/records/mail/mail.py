"""Mailboxes: durable mail between agents, which an agent reads when it chooses to.

    sent     a row with the next id of its recipient; unread
    read     marked with the time; stays until it is deleted
    deleted  the row is gone; its id is not given again

Ids count per recipient, from 1, in the order in which mails were committed: first in, first out for each sender. An
agent's row counts the mails that it was ever sent (``mailed``, the latest id) and those that it has not read
(``unread``). Both change in the transaction that changes the mail, under the lock of that row. So a crash leaves each
mail sent or not sent, read or unread, never in between.

An agent reads three kinds of mail: ``mail`` comes from an agent or a person, ``exit`` (of a death) and ``notice`` (of a
budget) from the runtime. The fourth kind, ``prompt``, is a person's prompt on its way to the agent: it has an id, and
the functions here do not show it (`ikigai_actors.records.mail.prompts`).

`write_mail`, `take_mail` and `take_one` are functions of a transaction that has locked the recipient, so they can be
part of a larger unit. `Send`, `Read`, `Open` and `Delete` are units of their own. All other functions only read, for
dead agents too.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ikigai_actors.arguments import check_count
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import BadInput, MailboxFull, MailNotFound
from ikigai_actors.frozen import NO_DATA, maker
from ikigai_actors.records.agents.registry import Handle, uuid_of
from ikigai_actors.records.messages.blobs import write_blobs
from ikigai_actors.records.messages.principals import PRINCIPAL
from ikigai_actors.store.asker import current_principal
from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.text import check_text, utc_time

MAIL, EXIT, NOTICE, PROMPT = "mail", "exit", "notice", "prompt"
"""The kinds of mail."""

MAIL_LIMIT = 64 * 1024
"""The most bytes of a body, in UTF-8."""

MAILBOX_CAPACITY = 10_000
"""The most unread mails of an agent. Mail of the kinds ``exit`` and ``notice`` is accepted in addition."""

PERSON = ""
"""The value of ``sender`` in a query that means a person. In a `Mail` it is None."""

A_PERSON = "a person"
"""The name of a sender that is no agent."""

PREVIEWS = 20
"""The most mails of which `unread_mailbox` returns the beginning."""

PREVIEW_LENGTH = 80
"""The most characters of the beginning of a mail."""

PAGE = 500
"""The number of mails that are read at a time when only some of them will be taken."""

_EVERYTHING = 2**62


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail: a row of table ``mail``."""

    recipient: str
    """The uuid of the recipient."""
    id: int
    """The number in the recipient's mailbox, from 1; never used again."""
    sender: str | None
    """The uuid of the agent that sent it; None for a person or the runtime."""
    kind: str
    """The kind: ``mail``; ``exit`` for a report of a death, ``notice`` for one of the runtime."""
    body: str
    """The text of the mail."""
    created_at: int
    """The time when it was sent, in milliseconds since 1970 (UTC)."""
    read_at: int | None
    """The time when it was read, in milliseconds since 1970 (UTC); None while it is unread."""

    @property
    def created_time(self) -> datetime:
        """The time when the mail was sent, in UTC."""
        return utc_time(self.created_at)

    @property
    def read_time(self) -> datetime | None:
        """The time when the mail was read, in UTC; None while it is unread."""
        return None if self.read_at is None else utc_time(self.read_at)


_mail = maker(Mail)


@dataclass(frozen=True, slots=True)
class Preview:
    """The beginning of an unread mail."""

    id: int
    sender: str | None
    kind: str
    text: str
    """The beginning of the body, on one line."""
    created_at: int


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The unread mail of an agent."""

    unread: int
    """The number of unread mails."""
    senders: Mapping[str | None, int]
    """The number of unread mails by sender, the sender of the oldest mail first. The key None is a person."""
    previews: tuple[Preview, ...]
    """The beginnings of the oldest unread mails, at most `PREVIEWS`."""

    def summary(self, names: Mapping[str | None, str]) -> str:
        """Describe in words how much mail is unread, and from which senders; ``names`` has the name of each sender."""
        if not self.unread:
            return "No unread mail."
        counts = ", ".join(f"{count} from {names[sender]}" for sender, count in self.senders.items())
        return f"{self.unread} unread: {counts}"

    @property
    def more(self) -> str:
        """Return a line about the mails without a preview; empty when all have one."""
        rest = self.unread - len(self.previews)
        return f"({rest} later ones)" if rest > 0 else ""


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of reading mail."""

    mails: tuple[Mail, ...]
    """The mails that were read, oldest first. They are marked as read now."""
    remaining: int
    """The number of mails, from any sender, that are still unread."""


def check_letter(body: str, what: str = "mail") -> str:
    """Return the body, or raise `BadInput` if it is blank, longer than `MAIL_LIMIT`, or cannot be stored."""
    check_text(body, what)
    if not body.strip():
        raise BadInput(f"Expected a {what} that says something, got blank text.")
    if len(body) > MAIL_LIMIT // 4 and (size := len(body.encode())) > MAIL_LIMIT:
        raise BadInput(
            f"Expected a {what} of at most {MAIL_LIMIT:,} bytes, got {size:,}. Write a document and send its path."
        )
    return body


def check_mail_id(number: int) -> int:
    """Return the number, or raise `BadInput` if it cannot be a mail's number."""
    return check_count(number, "the number of a mail", least=1)


def write_mail(
    tx: Transaction,
    locked: LockedRows,
    recipient: str,
    sender: str | None,
    body: str,
    now: int,
    kind: str = MAIL,
    data: Mapping[str, Any] = NO_DATA,
) -> Mail:
    """Put a mail into the mailbox of a locked agent. The body, and the data of a prompt, must be checked before.

    Raises:
        AgentNotFound, AgentDead: there is no such living agent.
        MailboxFull: too much mail is unread; never for the kinds ``exit`` and ``notice``.
    """
    row = locked.living(recipient, " and takes no mail. See who lives, and send it there")
    if kind == MAIL and row.unread >= MAILBOX_CAPACITY:
        raise MailboxFull(
            f"The mailbox of agent {recipient} is full: {row.unread:,} unread mails. "
            "Wait until it has read some, then send again.",
            recipient,
        )
    number = locked.count(recipient, mailed=1, unread=0 if kind == PROMPT else 1).mailed
    if sender is None and (principal := current_principal()) is not None:
        data = {PRINCIPAL: principal, **data}
    further = json.dumps(data) if data else None
    tx.append(((recipient, number, sender, kind, body, now, None, further, 0),), "mail")
    return _mail(recipient, number, sender, kind, body, now, None)


def take_mail(
    tx: Transaction,
    locked: LockedRows,
    recipient: str,
    now: int,
    sender: str | None = None,
    limit: int | None = None,
    size: Callable[[Mail], int] = lambda mail: len(mail.body),
) -> Taken:
    """Read the oldest unread mails of a locked agent, and mark them as read.

    Args:
        tx: the transaction that holds the lock.
        locked: the locked rows.
        recipient: the agent's uuid.
        now: milliseconds since 1970.
        sender: only mail of this uuid, or of `PERSON`; None for all mail.
        limit: take whole mails until the sum of their sizes would exceed this, but at least one; None takes all.
        size: returns the size of a mail as it will be shown; by default the characters of its body.
    """
    row = locked.existing(recipient)
    mails = _unread(tx, recipient, sender) if limit is None else _unread_within(tx, recipient, sender, limit, size)
    if mails:
        now = max(now, tx.heard)  # other clocks have stamped them
        tx.run("mark_read", recipient=recipient, sender=sender, last=mails[-1].id, now=now)
        row = locked.count(recipient, unread=-len(mails))
    return Taken(tuple(replace(mail, read_at=now) for mail in mails), row.unread)


def take_one(tx: Transaction, locked: LockedRows, recipient: str, number: int, now: int) -> Mail:
    """Read one mail of a locked agent, and mark it as read. Raises `MailNotFound`."""
    locked.existing(recipient)
    mail = stored_mail(tx, recipient, number)
    if mail.read_at is not None:
        return mail
    now = max(now, tx.heard)
    tx.run("mark_one_read", recipient=recipient, id=number, now=now)
    locked.count(recipient, unread=-1)
    return replace(mail, read_at=now)


def sender_of(store: Store, sender: Handle | str | None) -> str | None:
    """Return the sender for a query of mail: a uuid, `PERSON`, or None for all. Raises the errors of `uuid_of`."""
    return sender if sender is None or sender == PERSON else uuid_of(store, sender)


class Send(Unit):
    """Send a mail; answered with the `Mail`.

    Raises the errors of `write_mail`, and `AgentNotFound`, `AgentDead` for the sender too: a dead agent sends no mail.
    """

    __slots__ = ("_blobs", "_body", "_data", "_kind", "_now", "_recipient", "_sender")

    locks = ("_recipient", "_sender")

    concerns_others = True

    def __init__(
        self,
        recipient: str,
        sender: str | None,
        body: str,
        now: int,
        kind: str = MAIL,
        data: Mapping[str, Any] = NO_DATA,
        blobs: tuple[Attachment, ...] = (),
    ) -> None:
        """Make the unit. Raises `BadInput` for a body that cannot be sent."""
        self._blobs = blobs
        self._recipient, self._sender, self._now, self._kind, self._data = recipient, sender, now, kind, data
        self._body = check_letter(body, kind)

    def write(self, tx: Transaction, locked: LockedRows) -> Any:
        sender = self._sender
        if sender is not None:
            locked.living(sender, " and sends no mail. Send as one that lives")
        write_blobs(tx, self._blobs)
        return write_mail(tx, locked, self._recipient, sender, self._body, self._now, self._kind, self._data)


@dataclass(frozen=True, slots=True)
class Read(Unit):
    """Read unread mail; answered with `Taken`. See `take_mail`."""

    recipient: str
    now: int
    sender: str | None = None
    limit: int | None = None

    locks = ("recipient",)

    def write(self, tx: Transaction, locked: LockedRows) -> Taken:
        return take_mail(tx, locked, self.recipient, self.now, self.sender, self.limit)


@dataclass(frozen=True, slots=True)
class Open(Unit):
    """Read one mail, even if it was read before; answered with the `Mail`. Raises `MailNotFound`."""

    recipient: str
    id: int
    now: int

    locks = ("recipient",)

    def write(self, tx: Transaction, locked: LockedRows) -> Mail:
        return take_one(tx, locked, self.recipient, self.id, self.now)


@dataclass(frozen=True, slots=True)
class Delete(Unit):
    """Delete a mail, read or not. Raises `MailNotFound`."""

    recipient: str
    id: int

    locks = ("recipient",)

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        locked.existing(self.recipient)
        deleted = tx.run("delete_mail", recipient=self.recipient, id=self.id)
        if not deleted:
            raise _no_mail(self.recipient, self.id)
        if deleted[0][0] is None:
            locked.count(self.recipient, unread=-1)


def unread_mailbox(tx: Transaction, recipient: str) -> Mailbox:
    """Return the unread mail of an agent: counts, and the beginnings of the oldest. Marks nothing as read."""
    senders: dict[str | None, int] = dict(tx.run("unread_senders", recipient=recipient))
    previews = tuple(
        Preview(mail.id, mail.sender, mail.kind, preview(mail.body), mail.created_at)
        for mail in _unread(tx, recipient, most=PREVIEWS)
    )
    return Mailbox(sum(senders.values()), senders, previews)


def kind_mark(kind: str) -> str:
    """Return the words before the body of a mail of this kind, by which a model recognises mail of the runtime."""
    return f"[{kind}] " if kind in (EXIT, NOTICE) else ""


def unread_kinds(tx: Transaction, recipient: str) -> list[tuple[str | None, str]]:
    """Return each pair of sender and kind that occurs in an agent's unread mail."""
    return [(sender, kind) for sender, kind in tx.run("unread_of_all", recipient=recipient)]


def unread_up_to(tx: Transaction, recipient: str, last: int) -> int:
    """Return how many of an agent's mails with an id up to ``last`` are unread."""
    [(count,)] = tx.run("unread_up_to", recipient=recipient, last=last)
    return int(count)


def unread_letters(tx: Transaction, recipient: str, senders: Iterable[str]) -> set[str]:
    """Return those of these senders whose mail the recipient has not read."""
    return {row[0] for row in tx.run("unread_letters", recipient=recipient, senders=list(senders))}


def preview(body: str) -> str:
    """Return the beginning of a text on one line, at most `PREVIEW_LENGTH` characters."""
    line = " ".join(body[: 4 * PREVIEW_LENGTH].split())
    return line if len(line) <= PREVIEW_LENGTH else f"{line[: PREVIEW_LENGTH - 1]}…"


def latest(tx: Transaction, recipient: str, sender: str | None = None, most: int | None = None) -> list[Mail]:
    """Return an agent's mail, read or not, oldest first. Marks nothing as read.

    Args:
        tx: the transaction.
        recipient: the agent's uuid.
        sender: only mail of this agent, by uuid, or of `PERSON`; None is all mail.
        most: only this many, the latest; None for all.
    """
    most = _EVERYTHING if most is None else most
    if sender is None:
        rows = tx.run("latest_mail", recipient=recipient, most=most)
    elif sender == PERSON:
        rows = tx.run("latest_mail_from_person", recipient=recipient, most=most)
    else:
        rows = tx.run("latest_mail_from", recipient=recipient, sender=sender, most=most)
    return [_mail(*row) for row in reversed(rows)]


def stored_mail(tx: Transaction, recipient: str, number: int) -> Mail:
    """Return one mail of an agent, read or not. Marks nothing as read. Raises `MailNotFound`."""
    rows = tx.run("one_mail", recipient=recipient, id=number)
    if not rows:
        raise _no_mail(recipient, number)
    return _mail(*rows[0])


def _unread(
    tx: Transaction, recipient: str, sender: str | None = None, after: int = 0, most: int = _EVERYTHING
) -> list[Mail]:
    rows = tx.run("unread_mail", recipient=recipient, sender=sender, after=after, most=most)
    return [_mail(*row) for row in rows]


def _unread_within(
    tx: Transaction, recipient: str, sender: str | None, limit: int, size: Callable[[Mail], int]
) -> list[Mail]:
    """Return the oldest unread mails whose sizes fit into a limit.

    They are fetched in pages, since later mails may be long.
    """
    taken: list[Mail] = []
    total = 0
    while page := _unread(tx, recipient, sender, taken[-1].id if taken else 0, PAGE):
        for mail in page:
            total += size(mail)
            if taken and total > limit:
                return taken
            taken.append(mail)
    return taken


def all_mail(recipient: str, tx: Transaction) -> list[Row]:
    """Return the rows of all mail to an agent, including prompts, by number."""
    return tx.run("mail_of", recipient=recipient)


def _no_mail(recipient: str, number: int) -> MailNotFound:
    return MailNotFound(
        f"Agent {recipient} has no mail {number}: it was deleted, or never sent. See the list of its mail.", recipient
    )
