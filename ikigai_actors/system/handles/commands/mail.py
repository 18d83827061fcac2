"""The commands that send, read and delete mail, and that wait for it."""

from collections.abc import Sequence
from datetime import datetime

from ikigai_actors.actors.futures import Future, refuse_to_block
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.arguments import check_timeout
from ikigai_actors.programs.acts import VerbAct, program_frame
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.agents.registry import Handle
from ikigai_actors.records.lives.delivery import delivery
from ikigai_actors.records.mail.mail import PERSON, Delete, Mail, Open, Read, check_letter, check_mail_id
from ikigai_actors.records.mail.schedules import times
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase


class MailCommands(CommandBase[H]):
    """The commands that send, read and delete mail, and that wait for it."""

    __slots__ = ()

    def send(
        self,
        recipient: Handle | str,
        body: str,
        timeout: float | None = None,
        *,
        at: datetime | str | None = None,
        after: float | None = None,
        zone: str | None = None,
        key: str | None = None,
    ) -> Future[int]:
        """Send a mail as this agent; return, after the commit, its number in the recipient's mailbox.

        Mails of one sender arrive in the order in which they were sent. A mail for a later time arrives even if this
        agent has died meanwhile. Until then it is a timer of the recipient, and the number of the timer is returned.

        ``"group:reviewers"`` is a group: its members at the time of the commit get the mail, except this agent and
        members with full mailboxes. The number of members that got the mail is returned.

        Args:
            recipient: a handle, or a uuid, name, or unique prefix of a uuid; or a group.
            body: the text, at most 64 KiB in UTF-8, and not blank.
            timeout: seconds to wait; None waits forever.
            at: the time to send it, as in `remind`.
            after: the seconds until it is sent. Without ``at`` or ``after`` it is sent now.
            zone: as in `remind`.
            key: 1 to 200 printable characters that name this mail for this agent. A second call with the key, in any
                process and after any crash, sends nothing, and returns the number of the first mail.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several agents, have this name or prefix.
            AgentDead: the recipient is dead, or this agent is.
            BadInput: the body cannot be sent, or the time is wrong; `KeyTaken`: the key names another call.
            MailboxFull: the recipient has 10,000 unread mails.
            GroupEmpty: nobody else is in the group.
            TooManyTimers: the recipient has 100 timers.
        """
        to = getattr(recipient, "uuid", recipient)
        if (frame := program_frame("send", key=key, timeout=timeout)) is not None:
            check_letter(body)
            when = {"at": None if at is None else str(at), "after": after, "zone": zone}
            return VerbAct(frame, "send", {"sender": self.uuid, "to": to, "body": body, **when})
        now = self.system._clock.now_ms()
        unit = delivery(self.uuid, recipient, body, now, at=at, after=after, zone=zone)
        arguments = {"to": to, "body": body, **times(at, after, zone)}
        return self._write(unit, timeout, lambda sent: sent.id, self._call(key, "send", arguments, body))

    def open_mail(self, number: int, timeout: float | None = None) -> Future[Mail]:
        """Read one mail by its number, even if it was read before. It then counts as read.

        Args:
            number: the number of the mail in the agent's mailbox.
            timeout: seconds to wait; None waits forever.

        Raises:
            MailNotFound: there is no such mail.
        """
        return self._write(Open(self.uuid, check_mail_id(number), self.system._clock.now_ms()), timeout)

    def read_mail(self, sender: Handle | str | None = None, timeout: float | None = None) -> Future[list[Mail]]:
        """Read the agent's unread mail, oldest first, and mark it as read in the same commit.

        Args:
            sender: only mail of this agent (a handle or text, as in `send`); ``""`` is a person outside of any agent.
                None reads all.
            timeout: seconds to wait; None waits forever.

        Returns:
            The mails.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several agents, have the name or prefix of the sender.
        """
        now = self.system._clock.now_ms()
        if sender is None or (isinstance(sender, str) and sender == PERSON):
            unit: Unit = Read(self.uuid, now, sender)
        else:
            unit = about(sender, Read, lambda uuid: Read(self.uuid, now, uuid))
        return self._write(unit, timeout, lambda taken: list(taken.mails))

    def delete_mail(self, number: int, timeout: float | None = None) -> Future[None]:
        """Delete one mail for good. Its number is not used again.

        Args:
            number: the number of the mail in the agent's mailbox.
            timeout: seconds to wait; None waits forever.

        Raises:
            MailNotFound: there is no such mail.
        """
        return self._write(Delete(self.uuid, check_mail_id(number)), timeout, lambda _: None)

    def wait(
        self, agents: Sequence[H | str] | None = None, timeout: float | None = None
    ) -> Future[dict[H | str, WaitResult]]:
        """Wait for mail; or until each of some agents has sent mail, is idle, or has ended.

        An agent is ``idle`` when it has no open turn and no waiting prompt. An agent whose turn was cut off and not
        resumed is not idle. While the call waits for further agents, the results of the others stay as they were first
        seen. The result ``mail`` takes precedence over all others. No thread polls during the wait.

        Args:
            agents: handles, or texts as in `send`. None waits for mail from anybody.
            timeout: seconds to wait; 0 looks once, None waits forever.

        Returns:
            The reason why the wait ended for each agent, with the agents as in the argument: ``mail`` (unread, in this
                agent's mailbox), ``idle``, ``stopped``, ``budget``, ``dead``, ``unknown``; or ``timeout``. If
                ``agents`` was None, the senders of unread mail: handles, and ``""`` for a person outside of any
                agent; ``dead`` for an agent whose only mail is its exit; empty when no mail came in time.

        Raises:
            BadInput: an agent or the time-out cannot be used.
            AmbiguousAgent: several agents have this prefix.
            AgentDead: this agent is dead, so nobody sends it mail any more.
            WouldWaitForItself: called by the code of an agent that would wait for the end of its own turn.
            WouldDeadlock: called by the code of an agent for which one of these agents waits.
        """
        check_timeout(timeout)
        if self._waits:
            refuse_to_block()
        if agents is None:
            return self._wait(None, timeout)
        return self._beside(lambda: self._wait(agents, timeout), cancels=True)

    def _wait(self, agents: Sequence[H | str] | None, timeout: float | None) -> Future[dict[H | str, WaitResult]]:
        future, waiter = self.system._waits.prepare_by_name(self.uuid, agents, timeout, self.system._store, self._ref)
        if not self._waits:
            waiter.begin()
            return future
        try:
            waiter.begin()  # in here: Ctrl-C may come right after it
            future.get()
        finally:
            waiter.cancel()
        return future
