"""Prompts as mail of kind ``prompt``, until their agents begin with them.

Other processes send prompts in this way, and a host stores the prompts with which an agent cannot begin yet. When the
agent begins, the unit that appends the prompt's message marks the mail as read.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import AgentError, MailNotFound
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.records.mail.asked import Woken, askers_of, end_asked
from ikigai_actors.records.mail.mail import PROMPT, write_mail
from ikigai_actors.records.messages.blobs import write_blobs
from ikigai_actors.records.messages.forms import problem_of, prompt_form
from ikigai_actors.records.once import release_mail
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.unit import Addressed, LockedRows, RunAlone, Unit


class NewPrompt(NamedTuple):
    """A prompt by mail that its agent has not begun with: a row of the query ``new_prompts``."""

    agent: str
    """The uuid of the agent."""
    mail: int
    """The number of the mail."""
    text: str
    data: Mapping[str, Any] = NO_DATA
    """Further data of the message that the prompt will become."""
    interrupted: bool = False
    """Whether an INT came before its turn, which then ends as it begins."""


class PromptInterrupted(AgentError):
    """The error when the turn of a prompt was to open after an INT for this prompt. The turn must end as it begins."""


class Kept(NamedTuple):
    """The answer of a `KeepPrompt`: the mail as which the prompt is stored, and earlier prompts."""

    mail: int
    """The number of the mail that the prompt is now."""
    before: tuple[NewPrompt, ...]
    """The prompts of other processes that come before it, and that the agent may not know yet."""


@dataclass(frozen=True, slots=True)
class KeepPrompt(Unit):
    """Store a prompt that its agent cannot begin with now, as mail of kind ``prompt``, of any length.

    Answered with `Kept`. Raises the errors of `write_mail`.
    """

    recipient: str
    text: str
    now: int
    known: int
    """The number of the latest prompt from another process that the agent knows; 0 for none."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Further data of the message that the prompt will become."""
    blobs: tuple[Attachment, ...] = ()
    """The attachments to which the data refer."""

    locks = ("recipient",)

    def write(self, tx: Transaction, locked: LockedRows) -> Kept:
        number = write_mail(tx, locked, self.recipient, None, self.text, self.now, PROMPT, self.data).id
        write_blobs(tx, self.blobs)
        rows = tx.run("prompts_between", recipient=self.recipient, after=self.known, before=number)
        return Kept(number, tuple(map(_new_prompt, rows)))


class WithdrawPrompt(Addressed):
    """Delete a prompt that its agent has not begun with; answered with whether it was deleted.

    Its key can be used again.

    A program that waits for the turn of this prompt goes on. Then the answer is `Woken`, which counts as true.
    """

    __slots__ = ("_askers", "_id", "_recipient")

    concerns_others = True

    def __init__(self, recipient: str, number: int) -> None:
        self._recipient, self._id, self._askers = recipient, number, set[str]()

    @property
    def touches(self) -> tuple[str, ...]:
        return (self._recipient, *sorted(self._askers))

    def look_up(self, tx: Transaction) -> None:
        self._askers = askers_of(tx, self._recipient, self._id)

    def write(self, tx: Transaction, locked: LockedRows) -> "bool | Woken":
        askers = askers_of(tx, self._recipient, self._id)
        if not askers <= locked.keys():  # one has begun to wait since the look-up
            raise RunAlone(WithdrawPrompt(self._recipient, self._id))
        if not tx.run("withdraw_prompt", recipient=self._recipient, id=self._id):
            return False
        release_mail(tx, self._recipient, self._id)
        end_asked(tx, [(asker, self._recipient, self._id) for asker in sorted(askers)])
        return Woken(True, self._recipient) if askers else True


@dataclass(frozen=True, slots=True)
class EndPrompt(Unit):
    """Mark a prompt so that its turn ends as soon as it begins; answered with whether it was still waiting."""

    recipient: str
    id: int

    locks = ("recipient",)

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        return bool(tx.run("interrupt_prompt", recipient=self.recipient, id=self.id))


def take_prompt(tx: Transaction, agent: str, mail: int, now: int, *, ends: bool) -> None:
    """Mark a prompt of a locked agent as read, in the unit that opens the turn of the prompt.

    ``ends``: whether the unit also ends that turn.
    """
    if tx.run("take_prompt", recipient=agent, id=mail, now=now, ends=int(ends)):
        return
    if tx.run("interrupted_prompt", recipient=agent, id=mail):
        raise PromptInterrupted(f"An INT came before the turn of prompt {mail} of agent {agent}.", agent)
    raise MailNotFound(f"Prompt {mail} of agent {agent} was taken up before.", agent)


def ends_as_it_begins(tx: Transaction, recipient: str, number: int) -> bool:
    """Return whether the turn of a waiting prompt will end as soon as it begins, because of an INT."""
    return any(bool(row[0]) for row in tx.run("interrupted_prompt", recipient=recipient, id=number))


def waiting_prompts(tx: Transaction, recipient: str) -> tuple[NewPrompt, ...]:
    """Return the prompts and steering messages that an agent has not taken up, oldest first."""
    rows = tx.run("prompts_between", recipient=recipient, after=0, before=2**63 - 1)
    return tuple(map(_new_prompt, rows))


def new_prompts(tx: Transaction, host: str | None = None) -> list[NewPrompt]:
    """Return the prompts by mail that living agents have not begun with, for one host or all.

    Each agent's are oldest first.
    """
    return ask_new_prompts(tx, host)()


def ask_new_prompts(tx: Transaction, host: str | None) -> Callable[[], list[NewPrompt]]:
    """Send the query of `new_prompts` in one round trip with other queries; return a function that reads the rows."""
    rows = tx.ask("new_prompts", host=host)
    return lambda: [_new_prompt(row) for row in rows()]


class PromptTimes(NamedTuple):
    """The times at which a prompt by mail was sent and taken up, in milliseconds since 1970."""

    created_at: int
    read_at: int | None
    """The time at which it was taken up; None while it waits."""


def prompt_times(tx: Transaction, recipient: str, number: int) -> PromptTimes | None:
    """Return the times of a prompt, by the number of its mail; None if it was never sent, or was withdrawn."""
    return next((PromptTimes(*row) for row in tx.run("prompt_times", recipient=recipient, id=number)), None)


def _new_prompt(row: Row) -> NewPrompt:
    agent, mail, text, data, interrupted = row
    try:
        further = json.loads(data) if data else NO_DATA
    except (ValueError, RecursionError):  # fsck reports it
        further = NO_DATA
    sound = isinstance(further, dict) and problem_of(prompt_form, further) is None
    return NewPrompt(agent, mail, text, further if sound else NO_DATA, bool(interrupted))
