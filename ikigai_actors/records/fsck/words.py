"""The checks of fsck for steering messages: messages ``steer``, and their mails. Pure."""

import json
from collections.abc import Collection, Iterator, Mapping

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.messages.messages import OPENINGS, Kind, Message
from ikigai_actors.records.messages.steered import STEER, steered_in
from ikigai_actors.store.base import Row


class WordCheck:
    """Checks the steering messages in all logs. Pass the messages in order."""

    def __init__(self) -> None:
        self._entered: dict[tuple[str, int], Message] = {}  # by agent and mail
        self._agent, self._latest = "", 0
        self._openings: set[int] = set()  # where the turn in progress may have been opened
        self._behind = 0  # the word after which no reply has come

    def read(self, message: Message) -> Iterator[str]:
        """Return the faults of one message, given the messages before it."""
        if message.agent_uuid != self._agent:
            self._agent, self._latest, self._openings, self._behind = message.agent_uuid, 0, set(), 0
        if message.kind in OPENINGS:
            self._openings = {*(() if message.kind == Kind.USER else self._openings), message.id}
        if message.kind in (Kind.ASSISTANT, Kind.USER):
            self._behind = 0
        if message.kind == Kind.TOOL_RESULT and self._behind:
            yield f"expected the result at {message.id} before the word at {self._behind}"
        if (steered_mail := steered_in(message)) is None:
            return
        mail, steered = steered_mail
        if mail <= self._latest:
            yield f"expected message {message.id} to come before word {self._latest}; it is word {mail}"
        if not steered.opened and steered.turn not in self._openings:
            yield f"expected message {message.id}, a word, to be in its turn {steered.turn}; another one is open"
        self._latest, self._behind = mail, message.id
        self._entered[message.agent_uuid, mail] = message

    def conclude(
        self, mails: list[Row], records: Mapping[str, AgentRecord], unknown: Collection[str]
    ) -> Iterator[Violation]:
        """Compare the steering messages of all logs with their mails, and return the violations.

        Args:
            mails: the mails of steering messages: recipient, number, body, read time and data of each.
            unknown: the agents of which some messages are not known.
        """
        rows = {(row[0], row[1]): (row[2], row[3]) for row in mails if _is_word(row[4])}
        for (agent, number), message in self._entered.items():
            record = records.get(agent)
            if (agent, number) not in rows and record is not None and record.imported_at is not None:
                continue  # a file has what its agents inherit from others, without the mail of those
            body, read_at = rows.get((agent, number), ("", None))
            if read_at is None or (message.kind == Kind.STEER and body != message.content):  # of others it was not read
                text = (
                    f"expected word {number}, message {message.id}, to be a mail with its text that is read; it is not"
                )
                yield Violation(Invariant.WORD, agent, text)
        for agent, number in sorted(key for key, (_, read_at) in rows.items() if read_at is not None):
            record = records.get(agent)
            kept = record is not None and record.pruned_at is None and record.imported_at is None
            if kept and agent not in unknown and (agent, number) not in self._entered:
                yield Violation(Invariant.WORD, agent, f"expected word {number}, which is read, to be in its log")


def _is_word(data: str) -> bool:
    """Return whether the data of a mail marks it as a steering message.

    Invalid JSON counts as no; other checks report it.
    """
    try:
        return STEER in json.loads(data)
    except (ValueError, RecursionError):
        return False
