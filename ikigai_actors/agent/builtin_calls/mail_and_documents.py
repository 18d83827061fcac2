"""What an agent does with mail and documents for a call of its model, each as the act of a `Performance`.

An act takes what the model gave: it looks names up, and checks texts and paths when it is written, so that whatever is
wrong becomes the call's result. The answer of those that only tell something is the result's text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.errors import AgentError, AgentNotFound, BadInput, MailNotFound
from ikigai_actors.records import mail as mailbox
from ikigai_actors.records import registry
from ikigai_actors.records.documents import (
    Change,
    DocumentVersion,
    check_body,
    check_path,
    check_version,
    listed,
    read_version,
)
from ikigai_actors.records.identity import is_agent_uuid
from ikigai_actors.records.mail import EXIT, Mail
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.locks import Locks
from ikigai_actors.store.unit import Addressed

OUTSIDE = "a person outside"
"""How a sender or author is called that is no agent."""


class SendMail(Addressed):
    """Send a mail to somebody who is called in some way; answered with the `Mail`. Raises as `mailbox.Send` does."""

    __slots__ = ("_body", "_now", "_refusal", "_sender", "_to", "_uuid")

    alone = False
    changes_tree = False

    def __init__(self, sender: str, to: str, body: str, now: int) -> None:
        self._sender, self._to, self._body, self._now = sender, to, body, now
        self._uuid: str | None = to if is_agent_uuid(to) else None
        self._refusal: AgentError | None = None

    def look_up(self, tx: Transaction) -> None:
        """See `Addressed.look_up`."""
        if is_agent_uuid(self._to):
            return
        self._uuid = self._refusal = None
        try:
            self._uuid = registry.find(tx, self._to).uuid
        except AgentError as refusal:
            self._refusal = refusal

    @property
    def touches(self) -> tuple[str, ...]:
        return () if self._uuid is None else (self._uuid,)

    def write(self, tx: Transaction, locked: Locks) -> Mail:
        """See `Unit.write`."""
        if self._uuid is None:
            raise self._refusal or AgentNotFound(f"Nobody is called {self._to!r}.", self._to)
        return mailbox.deliver(tx, locked, self._uuid, self._sender, mailbox.check_body(self._body), self._now)


class _OfAgent:
    """An act that touches its agent alone, which is locked in any case."""

    __slots__ = ()

    alone = False
    changes_tree = False
    touches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckMail(_OfAgent):
    """Look at one's mailbox."""

    agent: str

    def write(self, tx: Transaction, locked: Locks) -> str:
        """See `Unit.write`."""
        box, names = mailbox.check(tx, self.agent), _Names(tx)
        if not box.unread:
            return "No unread mail."
        counts = ", ".join(f"{count} of {names[sender]}" for sender, count in box.senders.items())
        lines = [f"{box.unread} unread: {counts}"]
        lines += [f"mail {one.id} of {names[one.sender]}: {_marked(one.kind)}{one.text}" for one in box.previews]
        if more := box.unread - len(box.previews):
            lines.append(f"({more} later ones)")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ReadMail(_OfAgent):
    """Read one's mail, as many whole mails as fit."""

    agent: str
    sender: str | None
    """Only mail of somebody who is called so; empty for nobody, None for all."""
    limit: int
    """Characters of the text; the first mail is read in any case."""
    now: int

    def write(self, tx: Transaction, locked: Locks) -> str:
        """See `Unit.write`. Raises `AgentNotFound`, `AmbiguousAgent`."""
        names = _Names(tx)

        def shown(mail: Mail) -> str:
            return f"mail {mail.id} of {names[mail.sender]}:\n{_marked(mail.kind)}{mail.body}"

        sender = registry.find(tx, self.sender).uuid if self.sender else self.sender
        room = self.limit - len(_more(mailbox.CAPACITY))
        taken = mailbox.take(tx, locked, self.agent, self.now, sender, room, lambda mail: len(shown(mail)) + 2)
        told = "\n\n".join(map(shown, taken.mails)) or "No unread mail."
        return told + (_more(taken.remaining) if taken.remaining else "")


@dataclass(frozen=True, slots=True)
class WriteDocument(_OfAgent):
    """Write a document, or delete it (no body); answered with the new version. Raises as `Documents.write` does."""

    agent: str
    path: str
    body: str | None
    expect: int | None
    now: int

    def write(self, tx: Transaction, locked: Locks) -> int:
        """See `Unit.write`."""
        if self.expect is not None:
            check_version(self.expect, least=0)
        body = None if self.body is None else check_body(self.body)
        return Change(check_path(self.path), body, self.agent, self.expect, self.now).write(tx, locked)


@dataclass(frozen=True, slots=True)
class ReadDocument(_OfAgent):
    """Read a document. Raises as `Documents.read` does."""

    path: str
    version: int | None

    def write(self, tx: Transaction, locked: Locks) -> str:
        """See `Unit.write`."""
        found = read_version(tx, self.path, self.version)
        about = DocumentVersion(found.path, found.version, found.author, found.created_at, False)
        return f"{found.path}: {about.told(_Names(tx)[found.author])}\n\n{found.body}"


@dataclass(frozen=True, slots=True)
class ListDocuments(_OfAgent):
    """List documents. Raises as `Documents.list` does."""

    prefix: str

    def write(self, tx: Transaction, locked: Locks) -> str:
        """See `Unit.write`."""
        names = _Names(tx)
        return "\n".join(f"{one.path}: {one.told(names[one.author])}" for one in listed(tx, self.prefix)) or (
            "No documents."
        )


class Noted(NamedTuple):
    """What an agent is told of its mailbox."""

    unread: int
    last: int
    """The id of its latest mail: what has come so far."""


@dataclass(frozen=True, slots=True)
class NoteMail(_OfAgent):
    """Find out what an agent is to be told of its mailbox; answered with `Noted`.

    Raises `MailNotFound` when nothing is unread, or when it was told, and of what it was told of nothing was read.
    """

    agent: str
    earlier: Mapping[str, int] | None
    """What it was told last, as far as it has not looked since."""

    def write(self, tx: Transaction, locked: Locks) -> Noted:
        """See `Unit.write`."""
        row = locked[self.agent]
        told = self.earlier
        if told is not None:
            waiting = mailbox.unread_up_to(tx, self.agent, told["last"])
        if not row.unread or (told is not None and waiting == told["unread"]):
            raise MailNotFound(f"Agent {self.agent} has no mail to be told of.", self.agent)
        return Noted(row.unread, row.mailed)


class Awaited(NamedTuple):
    """Somebody who is waited for."""

    called: str
    """As the waiter calls it."""
    uuid: str | None
    """None when nobody is called so."""


@dataclass(frozen=True, slots=True)
class NameAwaited(_OfAgent):
    """Find out who is waited for, now and not later: names move on. Answered with those, each once."""

    agent: str
    called: tuple[str, ...]
    children: bool
    """All its children as well: those that live, and those whose end it has not read of."""

    def write(self, tx: Transaction, locked: Locks) -> tuple[Awaited, ...]:
        """See `Unit.write`. Raises `AmbiguousAgent`, and `BadInput` for the agent itself."""
        found = [await_one(tx, one) for one in dict.fromkeys(self.called)]
        if self.children:
            ended = {sender for sender, kind in mailbox.unread_kinds(tx, self.agent) if kind == EXIT}
            known = registry.children(tx, self.agent)
            found += [Awaited(one.uuid, one.uuid) for one in known if one.living or one.uuid in ended]
        if self.agent in {one.uuid for one in found}:
            raise BadInput("That is you: you would wait for the end of your own turn. Wait for others.")
        return tuple(dict.fromkeys(found))


def await_one(tx: Transaction, called: str) -> Awaited:
    """Find out who is called so. Raises `AmbiguousAgent`."""
    try:
        return Awaited(called, registry.find(tx, called).uuid)
    except AgentNotFound:
        return Awaited(called, None)


class _Names(dict[str | None, str]):
    """How agents are called, by uuid: looked up when first asked for. Valid within the transaction."""

    def __init__(self, tx: Transaction) -> None:
        super().__init__({None: OUTSIDE})
        self._tx = tx

    def __missing__(self, uuid: str | None) -> str:
        name = registry.get(self._tx, str(uuid)).name
        called = self[uuid] = f"{name} ({uuid})" if name else str(uuid)
        return called


def _marked(kind: str) -> str:
    return "[exit] " if kind == EXIT else ""


def _more(count: int) -> str:
    return f"\n\n({count} more unread)"
