"""The post: commits what handles send, read and delete, and tells those whom it concerns; and waits for mail and agents
for them.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.futures import Future, acting_agent
from ikigai_actors.actors.threads import here
from ikigai_actors.agent.builtin_calls.wait import await_one
from ikigai_actors.agent.waits import Answers, Found, Ticket, Wait, Waits
from ikigai_actors.arguments import check_count, check_timeout, shown
from ikigai_actors.errors import BadInput, WouldWaitForItself
from ikigai_actors.records import mail as mailbox
from ikigai_actors.records import registry
from ikigai_actors.records.mail import NOBODY, Delete, Mail, Mailbox, Open, Read, Send, Taken, check_mail_id
from ikigai_actors.records.registry import Handle
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.unit import Unit
from ikigai_actors.store.verdicts import Committed, Verdict
from ikigai_actors.store.writer import Writer

T = TypeVar("T")


class Post:
    """The post of one system. An agent is given by its handle, uuid, name or prefix; `NOBODY` is a person outside."""

    def __init__(self, store: Store, journal: Writer, clock: Clock, waits: Waits) -> None:
        self._store, self._journal, self._clock, self._waits = store, journal, clock, waits

    def letter(self, sender: str | None, recipient: Handle | str, body: str) -> Send:
        """A mail on its way; raises what looking its recipient up does, and `BadInput` for its body."""
        return Send(registry.uuid_of(self._store, recipient), sender, body, self._clock.now_ms())

    def send(self, letter: Send, timeout: float | None = None) -> int:
        """Commit a mail; return its number in the recipient's mailbox."""
        mail: Mail = self._journal.perform(letter, timeout)
        return mail.id

    def ask_send(self, letter: Send) -> Future[int]:
        """The same, to be awaited."""
        return self._submit(letter, lambda mail: mail.id)

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

    def check(self, recipient: str, timeout: float | None = None) -> Mailbox:
        """What an agent has not read. A limited wait has a thread of its own: nothing ends a read of the database."""

        def look() -> Mailbox:
            return self._store.read(lambda tx: mailbox.check(tx, recipient))

        if check_timeout(timeout) is None:
            return look()
        found: Future[Mailbox] = Future()

        def run() -> None:
            try:
                found.settle(look())
            except Exception as error:  # whatever it is, the caller is told
                found.settle(error)

        here().thread(run, "ikigai-check-mail").start()
        return found.get(timeout=timeout)

    def latest(self, recipient: str, sender: Handle | str | None, most: int | None) -> list[Mail]:
        """An agent's mail, read or not, oldest first."""
        known = self._sender(sender)
        if most is not None:
            check_count(most, "latest")
        return self._store.read(lambda tx: mailbox.latest(tx, recipient, known, most))

    def waiting(
        self, waiter: str, agents: Iterable[Any] | None, timeout: float | None, handle: Callable[[str], Any]
    ) -> tuple[Future[dict[Any, Found]], Ticket]:
        """A wait for mail or agents, to be begun; what comes of it, by agent as it was given, and its ticket.

        Raises `BadInput`, `AmbiguousAgent`, and `WouldWaitForItself` for code of an agent that is to be waited for.
        """
        check_timeout(timeout)
        if agents is not None and (isinstance(agents, str) or not isinstance(agents, Iterable)):
            raise BadInput(f"Expected agents to be a list of agents, or None for all mail; got {shown(agents)}.")
        named = None if agents is None else [*agents]
        known = None if named is None else self._store.read(lambda tx: {one: _known(tx, one) for one in named})
        acting = acting_agent.get(None)
        if known is not None and acting is not None and acting.uuid in known.values():
            raise WouldWaitForItself(f"Agent {acting.uuid} would wait for the end of its own turn. Wait for others.")

        def by_agent(answers: Answers) -> dict[Any, Found]:
            if known is None:
                return {handle(uuid) if uuid else NOBODY: found for uuid, found in answers.items()}
            return {one: Found.UNKNOWN if uuid is None else answers[uuid] for one, uuid in known.items()}

        future: Future[dict[Any, Found]] = Future(make=by_agent, cancel=lambda: ticket.cancel())
        uuids = None if known is None else tuple(dict.fromkeys(uuid for uuid in known.values() if uuid is not None))
        deadline = None if timeout is None else self._clock.now_ms() + int(timeout * 1000)
        ticket = self._waits.ticket(Wait(waiter, uuids, deadline), future.settle)
        return future, ticket

    def _sender(self, sender: Handle | str | None) -> str | None:
        return sender if sender is None or sender == NOBODY else registry.uuid_of(self._store, sender)

    def _submit(self, unit: Unit, make: Callable[..., T]) -> Future[T]:
        future: Future[T] = Future(make=make)

        def done(verdict: Verdict) -> None:
            future.settle(verdict.value if isinstance(verdict, Committed) else verdict.error)

        self._journal.submit(unit, done)
        return future


def _known(tx: Transaction, agent: object) -> str | None:
    """The uuid of an agent that is given by its handle, uuid, name or prefix; None when there is none."""
    text = getattr(agent, "uuid", agent)
    if not isinstance(text, str):
        raise BadInput(f"Expected an agent, or its uuid, name or prefix; got {shown(agent)}.")
    return await_one(tx, text).uuid
