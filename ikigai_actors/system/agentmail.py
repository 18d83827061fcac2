"""The mail of handles: what an `AgentRef` sends, and reads from its mailbox.

    root.send(child, "The schema has changed.")         # returns after the commit
    child.check_mail().unread                           # 1
    [mail.body for mail in child.read_mail(sender=root)]
    root.wait([child], timeout=30)                      # {child: "idle"}
    await root.ask.send(child, "And the indexes.")      # in an asyncio program

Mail waits until it is read; nobody is prompted by it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ikigai_actors.actors.futures import Future, refuse_to_block
from ikigai_actors.actors.threads import here
from ikigai_actors.agent.waits import Found, Ticket
from ikigai_actors.arguments import check_count, check_timeout
from ikigai_actors.records.mail import (
    Delete,
    Mail,
    Mailbox,
    Open,
    Read,
    Send,
    Taken,
    check,
    check_mail_id,
    letter,
    sender_of,
)
from ikigai_actors.records.mail import latest as latest_mail
from ikigai_actors.records.registry import Handle

if TYPE_CHECKING:
    from ikigai_actors.system.interface import System
    from ikigai_actors.system.ref import AgentRef


class AgentMailCommands:
    """The commands about mail, each as a future: ``await ref.ask.send(...)``. See `AgentMail` for what they do."""

    __slots__ = ()

    _ref: "AgentRef"

    def send(self, recipient: Handle | str, body: str) -> Future[int]:
        """See `AgentMail.send`."""
        return self._ref.system.writer.ask(_letter(self._ref, recipient, body), lambda mail: mail.id)

    def read_mail(self, sender: Handle | str | None = None) -> Future[list[Mail]]:
        """See `AgentMail.read_mail`."""
        return self._ref.system.writer.ask(_reading(self._ref, sender), lambda taken: list(taken.mails))

    def wait(
        self, agents: "Sequence[AgentRef | str] | None" = None, timeout: float | None = None
    ) -> "Future[dict[AgentRef | str, Found]]":
        """See `AgentMail.wait`. Cancelling an `await` of it ends the waiting."""
        future, ticket = _wait(self._ref, agents, timeout)
        ticket.begin()
        return future


class AgentMail:
    """The part of an `AgentRef` that is about mail."""

    __slots__ = ()

    system: "System"
    uuid: str

    def send(self, recipient: Handle | str, body: str, timeout: float | None = None) -> int:
        """Send a mail as this agent; return, after the commit, its number in the recipient's mailbox.

        Mails of one sender arrive in the order in which they were sent.

        Args:
            recipient: a handle, or a uuid, name, or unique prefix of a uuid.
            body: at most 64 KiB in UTF-8, and not blank.
            timeout: seconds to wait.

        Raises:
            AgentNotFound, AmbiguousAgent: the recipient is nobody, or several.
            AgentDead: the recipient is dead, or this agent is.
            BadInput: the body cannot be sent.
            MailboxFull: the recipient has 10,000 unread mails.
        """
        mail: Mail = self.system.writer.perform(_letter(self, recipient, body), timeout)
        return mail.id

    def check_mail(self, timeout: float | None = None) -> Mailbox:
        """What it has not read: how many mails, of whom, and how the oldest begin. Marks nothing.

        Args:
            timeout: seconds to wait.
        """

        def look() -> Mailbox:
            return self.system.store.read(lambda tx: check(tx, self.uuid))

        if check_timeout(timeout) is None:
            return look()
        found: Future[Mailbox] = Future()

        def run() -> None:
            try:
                found.settle(look())
            except Exception as error:  # whatever it is, the caller is told
                found.settle(error)

        here().thread(run, "ikigai-check-mail").start()  # nothing ends a read of the database
        return found.get(timeout=timeout)

    def read_mail(self, sender: Handle | str | None = None, timeout: float | None = None) -> list[Mail]:
        """Read its unread mail, oldest first, and mark it as read in the same commit.

        Args:
            sender: only what this agent sent (a handle or text, as in `send`); ``""`` is a person outside of any
                agent. None reads all.
            timeout: seconds to wait.
        """
        reading = _reading(self, sender)
        taken: Taken = self.system.writer.perform(reading, timeout)
        return list(taken.mails)

    def wait(
        self, agents: "Sequence[AgentRef | str] | None" = None, timeout: float | None = None
    ) -> "dict[AgentRef | str, Found]":
        """Wait until this agent has unread mail, or until each of some agents has sent it mail that is unread, has
        nothing to do, or has ended. Returns why, by agent: ``mail``, ``idle``, ``stopped``, ``dead``, ``unknown``; or
        ``timeout``.

        An agent has nothing to do (``idle``) when no turn is open and no prompt waits; one whose turn was cut off and
        not resumed is not idle. Whatever an agent was once found to be stays, while others are waited for; ``mail`` is
        told rather than anything else. No thread polls meanwhile.

        Args:
            agents: handles, or texts as in `send`; the answer has them as they are given. None waits for mail of
                anybody, and the answer then has whose mail is unread: handles, ``""`` for a person outside of any
                agent, and ``dead`` where all that one sent is its exit; nobody when none came in time.
            timeout: seconds to wait; 0 looks once, None waits for ever.

        Raises:
            BadInput: an agent or the timeout makes no sense.
            AmbiguousAgent: a prefix is that of several.
            AgentDead: this agent is dead, so nobody sends it mail any more.
            WouldWaitForItself: called by the code of an agent that would wait for its own turn.
        """
        refuse_to_block()
        future, ticket = _wait(self, agents, timeout)
        try:
            ticket.begin()  # in here: Ctrl-C may come right behind it
            return future.get()
        finally:
            ticket.cancel()

    def open_mail(self, number: int, timeout: float | None = None) -> Mail:
        """One mail by its number, read before or not; from now on it is read. Raises `MailNotFound`."""
        opening = Open(self.uuid, check_mail_id(number), self.system.clock.now_ms())
        mail: Mail = self.system.writer.perform(opening, timeout)
        return mail

    def delete_mail(self, number: int, timeout: float | None = None) -> None:
        """Delete one mail for good; its number is not given again. Raises `MailNotFound`."""
        self.system.writer.perform(Delete(self.uuid, check_mail_id(number)), timeout)

    def mails(self, sender: Handle | str | None = None, latest: int | None = None) -> list[Mail]:
        """All its mail, read or not, oldest first; of one sender as in `read_mail`, or only the latest so many. Marks
        nothing.
        """
        store = self.system.store
        known = sender_of(store, sender)
        if latest is not None:
            check_count(latest, "latest")
        return store.read(lambda tx: latest_mail(tx, self.uuid, known, latest))


def _letter(ref: AgentMail, recipient: Handle | str, body: str) -> Send:
    return letter(ref.system.store, ref.uuid, recipient, body, ref.system.clock.now_ms())


def _reading(ref: AgentMail, sender: Handle | str | None) -> Read:
    return Read(ref.uuid, ref.system.clock.now_ms(), sender_of(ref.system.store, sender))


def _wait(
    ref: AgentMail, agents: "Sequence[AgentRef | str] | None", timeout: float | None
) -> "tuple[Future[dict[AgentRef | str, Found]], Ticket]":
    system = ref.system
    return system.waits.ticket_of(ref.uuid, agents, timeout, system.store, system.handle)
