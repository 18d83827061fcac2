"""Steering messages: texts for an agent within a turn, which its model reads before its next request.

    kept       mail of kind ``prompt`` with ``data.steer``; unread, in one order with prompts
    entered    a message ``steer`` of the turn in progress, or the prompt that opens one; its mail is read
    withdrawn  the mail is deleted before it is read

The unit that adds the messages to the history marks their mails as read, so each is in the history once, even after a
crash. It holds the lock of the agent's row, as a withdrawal does.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ikigai_actors.errors import AgentError, BadInput, InboxFull
from ikigai_actors.records.agents import registry
from ikigai_actors.records.mail.mail import PROMPT, Mail, Send
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.messages.steered import NOW, STEER, Steered, steered_in
from ikigai_actors.records.once import KeyedCall, answer_under, claim_key, left_as, note_answer, release
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows

UNREAD_WORDS = 1_000
"""The most unread steering messages of an agent."""

WORDS_AT_ONCE, SIZE_AT_ONCE = 100, 256 * 1024
"""The most steering messages, and the most bytes of them in UTF-8, that one step takes in. The first is always
taken.
"""


class WordsGone(AgentError):
    """The error when steering messages were to enter a history that were withdrawn, or are in it already."""

    def __init__(self, message: str, agent: str, mails: frozenset[int]) -> None:
        super().__init__(message, agent)
        self.mails = mails
        """The numbers."""


class KeepWord(Send):
    """Store a steering message for an agent; answered with `KeptWord`.

    Raises the errors of `Send`, `InboxFull`, and `KeyTaken`.
    """

    __slots__ = ("_call", "_receipt")

    def __init__(
        self,
        recipient: str,
        text: str,
        now: int,
        *,
        at_once: bool,
        sender: str | None = None,
        call: KeyedCall | None = None,
        receipt: Any = None,
    ) -> None:
        """Make the unit. Raises `BadInput` for a text that cannot be sent.

        Args:
            now: milliseconds since 1970.
            at_once: whether the message cuts off the step in progress.
            sender: the uuid of the agent that sends it; None for a person.
            call: the keyed call; a second call with its key finds the first message, even if that is
                in the history already.
            receipt: the caller's receipt for the position of the message; this unit only carries it.
        """
        data: dict[str, Any] = {STEER: NOW if at_once else True}
        super().__init__(recipient, sender, text, now, PROMPT, data)
        self._call, self._receipt = call, receipt

    def write(self, tx: Transaction, locked: LockedRows) -> "KeptWord":
        if self._call is None:
            return self._keep(tx, locked)
        if (known := claim_key(tx, self._call, self._now)) is not None:
            return self._again(tx, known["mail"])
        try:
            kept = self._keep(tx, locked)
        except BaseException:
            release(tx, self._call)
            raise
        note_answer(tx, self._call, left_as(kept.mail.id))
        return kept

    def entered(self, tx: Transaction) -> tuple[int, Steered] | None:
        """Return the mail and the position of the message stored earlier with this key, if it has entered the history.

        Raises `KeyTaken`.
        """
        known = None if self._call is None else answer_under(tx, self._call)
        place = None if known is None else entered_as(tx, self._recipient, known["mail"])
        return None if known is None or place is None else (known["mail"], place)

    def _keep(self, tx: Transaction, locked: LockedRows) -> "KeptWord":
        [(waiting,)] = tx.run("count_words", recipient=self._recipient)
        if waiting >= UNREAD_WORDS:
            text = f"{UNREAD_WORDS:,} words wait for agent {self._recipient}. Wait until it has read some."
            raise InboxFull(text, self._recipient)
        if self._sender is not None:
            name = registry.get(tx, self._sender).name
            self._data = {**self._data, "sender": self._sender, **({} if name is None else {"name": name})}
        return KeptWord(super().write(tx, locked), self._data, self._receipt)

    def _again(self, tx: Transaction, number: int) -> "KeptWord":
        """Return the answer for a key that a steering message has already.

        That message may have entered the history.
        """
        mail = Mail(self._recipient, number, self._sender, PROMPT, self._body, self._now, None)
        return KeptWord(mail, self._data, self._receipt, entered_as(tx, self._recipient, number))


class KeptWord(NamedTuple):
    """The answer of a `KeepWord`: the mail as which the steering message is stored."""

    mail: Mail
    data: Mapping[str, Any]
    receipt: Any
    entered: Steered | None = None
    """The place of the message in the history, if it was stored before with the same key and read since."""


def entered_as(tx: Transaction, agent: str, mail: int) -> Steered | None:
    """Return the position at which a steering message, named by its mail, has entered its agent's history.

    None if the mail was deleted since.
    """
    for row in tx.run("word_messages", uuid=agent):
        steered = steered_in(Message.from_row(row))
        if steered is not None and steered[0] == mail:
            return steered[1]
    return None


def check_words(tx: Transaction, agent: str, mails: Iterable[int]) -> None:
    """Raise `WordsGone` if one of these steering messages of a locked agent was read or withdrawn meanwhile."""
    asked = frozenset(mails)
    rows = tx.run("waiting_words", recipient=agent, ids=[str(mail) for mail in asked])
    if gone := asked - {row[0] for row in rows}:
        raise WordsGone(f"Agent {agent} is to read words that wait no more: {sorted(gone)}.", agent, gone)


def take_words(tx: Transaction, agent: str, mails: Iterable[int], now: int) -> None:
    """Mark steering messages of a locked agent as read."""
    tx.run("take_words", recipient=agent, now=now, ids=[str(mail) for mail in mails])


def check_below(tx: Transaction, sender: str, recipient: str) -> None:
    """Raise `BadInput` unless the recipient of a steering message is below its sender."""
    if sender not in {row[0] for row in tx.run("supervisors_of", uuid=recipient)} - {recipient}:
        raise BadInput(f"Only an agent below you reads what you say within its turn: send {recipient} a mail.")
