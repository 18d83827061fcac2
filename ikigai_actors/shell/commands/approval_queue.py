"""Questions to the person: the calls of models that wait for approval, under numbers that keep their meaning.

A number is given when a question is first seen, and never to another one: ``/approve 2`` means the question that was
shown as 2, whatever came meanwhile.
"""

import json
import threading

from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.errors import BadInput
from ikigai_actors.shell.text.harmless import one_line
from ikigai_actors.system.approvals import Approvals

_LENGTH = 300
"""Characters that are shown of a call's arguments."""


class ApprovalQueue:
    """The open questions of a session. Thread-safe."""

    def __init__(self, approvals: Approvals) -> None:
        self._approvals = approvals
        self._numbers: dict[tuple[str, int, str], int] = {}
        self._told: set[int] = set()
        self._numbering = threading.Lock()

    def open(self) -> dict[int, PendingCall]:
        """The open questions by number, in order."""
        found = {}
        for call in self._approvals.pending():
            key = (call.agent, call.reply, call.id)
            with self._numbering:
                number = self._numbers.setdefault(key, len(self._numbers) + 1)
            found[number] = call
        return dict(sorted(found.items()))

    def news(self) -> dict[int, PendingCall]:
        """The questions that were not shown yet."""
        new = {number: call for number, call in self.open().items() if number not in self._told}
        self._told.update(new)
        return new

    def choose(self, number: int | None, current: str) -> tuple[int, PendingCall]:
        """The question with a number; without one, the first of the current agent, or the only one there is.

        Raises `BadInput` when there is no such question, or it is not clear which.
        """
        questions = self.open()
        if not questions:
            raise BadInput("No call waits for approval.")
        if number is not None:
            if number not in questions:
                raise BadInput(f"No call waits under number {number}; /approvals lists those that do.")
            return number, questions[number]
        mine = [pair for pair in questions.items() if pair[1].agent == current]
        if not mine and len(questions) > 1:
            raise BadInput(f"{len(questions)} calls of other agents wait: give a number; /approvals lists them.")
        return (mine or list(questions.items()))[0]


def described_call(call: PendingCall) -> str:
    """A call on one line: the tool and its arguments."""
    arguments = one_line(json.dumps(call.input, ensure_ascii=False, default=str))
    return f"{call.tool} {arguments if len(arguments) <= _LENGTH else arguments[:_LENGTH] + ' …'}"
