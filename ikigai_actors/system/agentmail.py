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
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.records.mail import Mail, Mailbox
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
        post = self._ref.system.post
        return post.ask_send(post.letter(self._ref.uuid, recipient, body))

    def read_mail(self, sender: Handle | str | None = None) -> Future[list[Mail]]:
        """See `AgentMail.read_mail`."""
        post = self._ref.system.post
        return post.ask_read(post.reading(self._ref.uuid, sender))

    def wait(
        self, agents: "Sequence[AgentRef | str] | None" = None, timeout: float | None = None
    ) -> "Future[dict[AgentRef | str, WaitResult]]":
        """See `AgentMail.wait`. Cancelling an `await` of it ends the waiting."""
        system = self._ref.system
        future, waiter = system.post.waiting(self._ref.uuid, agents, timeout, system.handle)
        waiter.begin()
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
        post = self.system.post
        return post.send(post.letter(self.uuid, recipient, body), timeout)

    def check_mail(self, timeout: float | None = None) -> Mailbox:
        """What it has not read: how many mails, of whom, and how the oldest begin. Marks nothing.

        Args:
            timeout: seconds to wait.
        """
        return self.system.post.check(self.uuid, timeout)

    def read_mail(self, sender: Handle | str | None = None, timeout: float | None = None) -> list[Mail]:
        """Read its unread mail, oldest first, and mark it as read in the same commit.

        Args:
            sender: only what this agent sent (a handle or text, as in `send`); ``""`` is a person outside of any
                agent. None reads all.
            timeout: seconds to wait.
        """
        post = self.system.post
        return post.read(post.reading(self.uuid, sender), timeout)

    def wait(
        self, agents: "Sequence[AgentRef | str] | None" = None, timeout: float | None = None
    ) -> "dict[AgentRef | str, WaitResult]":
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
        future, waiter = self.system.post.waiting(self.uuid, agents, timeout, self.system.handle)
        try:
            waiter.begin()  # in here: Ctrl-C may come right behind it
            return future.get()
        finally:
            waiter.cancel()

    def open_mail(self, number: int, timeout: float | None = None) -> Mail:
        """One mail by its number, read before or not; from now on it is read. Raises `MailNotFound`."""
        return self.system.post.open(self.uuid, number, timeout)

    def delete_mail(self, number: int, timeout: float | None = None) -> None:
        """Delete one mail for good; its number is not given again. Raises `MailNotFound`."""
        self.system.post.delete(self.uuid, number, timeout)

    def mails(self, sender: Handle | str | None = None, latest: int | None = None) -> list[Mail]:
        """All its mail, read or not, oldest first; of one sender as in `read_mail`, or only the latest so many. Marks
        nothing.
        """
        return self.system.post.latest(self.uuid, sender, latest)
