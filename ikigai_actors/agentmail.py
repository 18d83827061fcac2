"""The mail of handles: what an `AgentRef` sends, and reads from its mailbox.

    root.send(child, "The schema has changed.")         # returns after the commit
    child.check_mail().unread                           # 1
    [mail.body for mail in child.read_mail(sender=root)]
    await root.ask.send(child, "And the indexes.")      # in an asyncio program

Mail waits until it is read; nobody is prompted by it.
"""

from typing import TYPE_CHECKING

from ikigai_actors.futures import Future
from ikigai_actors.mailbox import Mail, Mailbox
from ikigai_actors.registry import Handle

if TYPE_CHECKING:
    from ikigai_actors.ref import AgentRef
    from ikigai_actors.system import ActorSystem


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


class AgentMail:
    """The part of an `AgentRef` that is about mail."""

    __slots__ = ()

    system: "ActorSystem"
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

    def check_mail(self) -> Mailbox:
        """What it has not read: how many mails, of whom, and how the oldest begin. Marks nothing."""
        return self.system.post.check(self.uuid)

    def read_mail(self, sender: Handle | str | None = None, timeout: float | None = None) -> list[Mail]:
        """Read its unread mail, oldest first, and mark it as read in the same commit.

        Args:
            sender: only what this agent sent (a handle or text, as in `send`); ``""`` is a person outside of any
                agent. None reads all.
            timeout: seconds to wait.
        """
        post = self.system.post
        return post.read(post.reading(self.uuid, sender), timeout)

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
