"""The checks of fsck for the books of experiments: the notes and births in their logs. Pure.

Births are numbered 1, 2, 3 … in the order of the log, and so are verdicts; each trial has one verdict at most, after
its birth.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ikigai_actors.records.messages.messages import Kind, Message


class BookCheck:
    """Checks the births and verdicts of experiments in all logs. Pass the messages in order."""

    def __init__(self) -> None:
        self._births: dict[str, int] = {}
        self._verdicts: dict[str, int] = {}

    def read(self, message: Message) -> Iterator[str]:
        """Return the faults of one message, given the messages before it."""
        agent, data = message.agent_uuid, message.data
        if message.kind == Kind.FORK and "number" in data and "child" in data:
            due = self._births.get(agent, 0) + 1
            if data["number"] != due:
                yield f"expected message {message.id} to be the birth of trial {due}, got {data['number']!r}"
            self._births[agent] = due
        elif message.kind == Kind.NOTE and "verdicts" in data:
            yield from self._judged(message.id, agent, data)

    def _judged(self, position: int, agent: str, data: Mapping[str, Any]) -> Iterator[str]:
        verdicts = data["verdicts"]
        if not isinstance(verdicts, list) or not all(
            isinstance(verdict, list) and len(verdict) == 5 for verdict in verdicts
        ):
            yield f"expected the verdicts of message {position} to be lists of five"
            return
        for number, *_ in verdicts:
            due = self._verdicts.get(agent, 0) + 1
            if number != due or number > self._births.get(agent, 0):
                text = f"expected message {position} to give the verdict on trial {due}, which was born before it"
                yield f"{text}; it gives that on {number!r}"
            self._verdicts[agent] = due
