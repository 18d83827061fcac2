"""The built-in calls about mail: send, check_mail, read_mail; and the notice of new mail for an idle agent.

Names are looked up when the unit is written, so any error becomes the call's result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ikigai_actors.agent.builtin_calls.base import WHICH_AGENT, Argument, BuiltinCall, Given, text
from ikigai_actors.agent.builtin_calls.naming import CalledAs
from ikigai_actors.agent.turn.state import MailNotice
from ikigai_actors.errors import BadInput, MailNotFound
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.lives.delivery import delivery
from ikigai_actors.records.lives.membership import GROUP_PREFIX, GroupSent, group_in
from ikigai_actors.records.log.append import AppendCall, FencingToken
from ikigai_actors.records.mail import mail as mailbox
from ikigai_actors.records.mail.mail import Mail, kind_mark
from ikigai_actors.records.mail.words import KeepWord, KeptWord, check_below
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.text import binary_size
from ikigai_actors.tools.function import LIMIT


class SendCall(BuiltinCall):
    """The call ``send``: send a mail."""

    name = "send"
    description = (
        "Send a mail to another agent. It stays in the agent's mailbox until it is read; the agent is not interrupted. "
        "For what is long, write a document and send its path."
    )
    arguments: ClassVar = {
        "to": Argument("string", f"The recipient. {WHICH_AGENT} Or {GROUP_PREFIX}NAME: a whole group.", required=True),
        "body": Argument(
            "string", f"What it says; at most {binary_size(mailbox.MAIL_LIMIT)}.", required=True, may_be_empty=True
        ),
        "steer": Argument(
            "boolean",
            "For an agent below you: it reads the text at once, before it goes on with its turn, or in a new turn. "
            "That is no mail.",
        ),
    }

    def check(self, arguments: Given) -> None:
        super().check(arguments)
        mailbox.check_letter(text(arguments, "body"))
        if group_in(text(arguments, "to")) is not None and arguments.get("steer"):
            raise BadInput("No group can be steered: send to each of its members that is below you.")

    def act(self, agent: str, arguments: Given, now: int) -> Unit:
        to, body = text(arguments, "to"), text(arguments, "body")
        if arguments.get("steer"):
            return about(to, SteerBelow, lambda uuid: SteerBelow(agent, uuid, body, now))
        return delivery(agent, to, body, now)

    def to_model(self, answer: Mail | GroupSent | KeptWord) -> str:
        if isinstance(answer, KeptWord):
            return "Told: it reads this before it goes on."
        if isinstance(answer, GroupSent):
            full = f" The mailboxes of these are full: {', '.join(answer.full)}." if answer.full else ""
            return f"Sent to {answer.id} members.{full}"
        return f"Sent: mail {answer.id} in its mailbox."


class CheckMailCall(BuiltinCall):
    """The call ``check_mail``: count the unread mail."""

    name = "check_mail"
    description = (
        "Look at your mailbox: how much mail is unread, from which agents, and how the oldest begin. It marks nothing "
        "as read."
    )

    def act(self, agent: str, arguments: Given, now: int) -> "CheckMail":
        return CheckMail(agent)


class ReadMailCall(BuiltinCall):
    """The call ``read_mail``: read the unread mail."""

    name = "read_mail"
    description = (
        "Read your unread mail, oldest first, and mark it as read. When there is much of it you get as many whole "
        "mails as fit, and the number that remain."
    )
    arguments: ClassVar = {
        "sender": Argument(
            "string", f"Only mail from this agent. {WHICH_AGENT} Empty text means a person outside of any agent."
        ),
    }

    def act(self, agent: str, arguments: Given, now: int) -> "ReadMail":
        sender = None if arguments.get("sender") is None else text(arguments, "sender")
        return ReadMail(agent, sender, LIMIT, now)


CALLS = (SendCall(), CheckMailCall(), ReadMailCall())


@dataclass(frozen=True, slots=True)
class SteerBelow(Unit):
    """The unit that sends a steering message to an agent below this one; answered with `KeptWord`.

    Raises the errors of `KeepWord`.
    """

    sender: str
    to: str
    body: str
    now: int

    concerns_others = True
    locks = ("to",)

    def write(self, tx: Transaction, locked: LockedRows) -> KeptWord:
        check_below(tx, self.sender, self.to)
        return KeepWord(self.to, self.body, self.now, at_once=False, sender=self.sender).write(tx, locked)


@dataclass(frozen=True, slots=True)
class CheckMail(Unit):
    """The unit that counts the unread mail in the agent's mailbox."""

    agent: str

    def write(self, tx: Transaction, locked: LockedRows) -> str:
        box, names = mailbox.unread_mailbox(tx, self.agent), CalledAs(tx)
        lines = [box.summary(names)]
        lines += [
            f"mail {preview.id} from {names[preview.sender]}: {kind_mark(preview.kind)}{preview.text}"
            for preview in box.previews
        ]
        return "\n".join([*lines, box.more] if box.more else lines)


@dataclass(frozen=True, slots=True)
class ReadMail(Unit):
    """The unit that reads the agent's mail: as many whole mails as fit into the limit.

    Raises `AgentNotFound`, `AmbiguousAgent`.
    """

    agent: str
    sender: str | None
    """Read only mail of this agent, by uuid, name or prefix; empty for mail of people, None for all mail."""
    limit: int
    """The most characters of the text. The first mail is read even if it is longer."""
    now: int

    def write(self, tx: Transaction, locked: LockedRows) -> str:
        names = CalledAs(tx)

        def shown(mail: Mail) -> str:
            return f"mail {mail.id} from {names[mail.sender]}:\n{kind_mark(mail.kind)}{mail.body}"

        sender = registry.find(tx, self.sender).uuid if self.sender else self.sender
        room = self.limit - len(_more(mailbox.MAILBOX_CAPACITY))
        taken = mailbox.take_mail(tx, locked, self.agent, self.now, sender, room, lambda mail: len(shown(mail)) + 2)
        text = "\n\n".join(map(shown, taken.mails)) or "No unread mail."
        return text + (_more(taken.remaining) if taken.remaining else "")


def _more(count: int) -> str:
    return f"\n\n({count} more unread)"


class Noted(NamedTuple):
    """The number of unread mails and the latest mail, for a notice of new mail to an idle agent."""

    unread: int
    last: int
    """The id of the agent's latest mail."""


@dataclass(frozen=True, slots=True)
class NoteMail(Unit):
    """The unit that looks whether an idle agent must get a notice of unread mail; answered with `Noted`.

    Raises `MailNotFound` when no mail is unread, or when the agent got this notice before and has read no mail since.
    """

    agent: str
    earlier: Mapping[str, int] | None
    """The data of the earlier notice, if the agent has not looked at its mailbox since; else None."""

    def write(self, tx: Transaction, locked: LockedRows) -> Noted:
        row = locked[self.agent]
        earlier = self.earlier
        if earlier is not None:
            waiting = mailbox.unread_up_to(tx, self.agent, earlier["last"])
        if not row.unread or (earlier is not None and waiting == earlier["unread"]):
            raise MailNotFound(f"Agent {self.agent} has no mail to report.", self.agent)
        return Noted(row.unread, row.mailed)


def append_notice(unit: MailNotice, fence: FencingToken) -> AppendCall:
    """Return the unit of writes that gives an idle agent the notice of its mail."""
    act = NoteMail(unit.agent, unit.earlier)
    return AppendCall(unit.agent, act, lambda noted: unit.message(_noted(noted), noted._asdict()), fence)


def _noted(noted: Noted) -> str:
    mails = "mail" if noted.unread == 1 else "mails"
    return (
        f"You have {noted.unread} unread {mails}: {CheckMailCall.name} looks at the mailbox, {ReadMailCall.name} reads."
    )
