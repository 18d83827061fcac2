"""The post: commits what handles send, read and delete, and tells subscribers of what was sent."""

from collections.abc import Callable
from typing import TypeVar

from ikigai_actors import mailbox, registry
from ikigai_actors.clock import Clock
from ikigai_actors.futures import Future
from ikigai_actors.journal import Committed, Journal, Verdict
from ikigai_actors.mailbox import NOBODY, Delete, Mail, Mailbox, Open, Read, Send, Taken, check_mail_id
from ikigai_actors.publisher import Mailed, Publisher
from ikigai_actors.registry import Handle
from ikigai_actors.store.base import Store
from ikigai_actors.units import Unit

T = TypeVar("T")


class Post:
    """The post of one system. An agent is given by its handle, uuid, name or prefix; `NOBODY` is a person outside."""

    def __init__(self, store: Store, journal: Journal, publisher: Publisher, clock: Clock) -> None:
        """Put the parts together."""
        self._store, self._journal, self._publisher, self._clock = store, journal, publisher, clock

    def letter(self, sender: str | None, recipient: Handle | str, body: str) -> Send:
        """A mail on its way; raises what looking its recipient up does, and `BadInput` for its body."""
        return Send(registry.uuid_of(self._store, recipient), sender, body, self._clock.now_ms())

    def send(self, letter: Send, timeout: float | None = None) -> int:
        """Commit a mail; return its number in the recipient's mailbox."""
        mail: Mail = self._journal.perform(letter, timeout, self._announce)
        return mail.id

    def ask_send(self, letter: Send) -> Future[int]:
        """The same, to be awaited."""
        return self._submit(letter, lambda mail: mail.id, self._announce)

    def reading(self, recipient: str, sender: Handle | str | None) -> Read:
        """The reading of all unread mail, or of one sender's."""
        return Read(recipient, self._clock.now_ms(), self._sender(sender))

    def read(self, reading: Read, timeout: float | None = None) -> list[Mail]:
        """Commit a reading; return the mails, oldest first."""
        taken: Taken = self._journal.perform(reading, timeout)
        return list(taken.mails)

    def ask_read(self, reading: Read) -> Future[list[Mail]]:
        """The same, to be awaited."""
        return self._submit(reading, lambda taken: list(taken.mails))

    def open(self, recipient: str, number: int, timeout: float | None = None) -> Mail:
        """Read one mail, and mark it as read."""
        mail: Mail = self._journal.perform(Open(recipient, check_mail_id(number), self._clock.now_ms()), timeout)
        return mail

    def delete(self, recipient: str, number: int, timeout: float | None = None) -> None:
        """Delete one mail."""
        self._journal.perform(Delete(recipient, check_mail_id(number)), timeout)

    def check(self, recipient: str) -> Mailbox:
        """What an agent has not read."""
        return self._store.read(lambda tx: mailbox.check(tx, recipient))

    def latest(self, recipient: str, sender: Handle | str | None, most: int | None) -> list[Mail]:
        """An agent's mail, read or not, oldest first."""
        known = self._sender(sender)
        return self._store.read(lambda tx: mailbox.latest(tx, recipient, known, most))

    def _sender(self, sender: Handle | str | None) -> str | None:
        return sender if sender is None or sender == NOBODY else registry.uuid_of(self._store, sender)

    def _announce(self, mail: Mail) -> None:
        self._publisher.publish(Mailed(mail))

    def _submit(
        self, unit: Unit, make: Callable[..., T], then: Callable[..., object] = lambda answer: None
    ) -> Future[T]:
        future: Future[T] = Future(make=make)

        def done(verdict: Verdict) -> None:
            if isinstance(verdict, Committed):
                then(verdict.value)
            future.settle(verdict.value if isinstance(verdict, Committed) else verdict.error)

        self._journal.submit(unit, done)
        return future
