"""The book of an experiment: the log of the agent that it is, with the births and verdicts of trials.

    note {"terms": …}                                        what is tried, once
    note {"verdicts": [[number, score, why, over, end], …]}  in the order of the numbers; "by" which check in a
    regression
    fork {"child": …, "of": …, "at": …, "number": …}         the birth of a trial

A note and the births after it are one unit, so a trial that depends on a verdict is born with it or not at all.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ikigai_actors.behaviour.plans.plan import Verdict
from ikigai_actors.records.messages.messages import Kind, Message


class TrialRecord(NamedTuple):
    """A trial that was born, as the book has it."""

    number: int
    agent: str
    """The uuid."""
    of: int
    """The trial from whose end it goes on; 0 for where the experiment begins."""
    prompt: str | None
    place: int
    arm: str


class JudgedTrial(NamedTuple):
    """A verdict, as the book has it."""

    verdict: Verdict
    end: int
    """The last position of the trial when it was judged: what goes on from it forks there."""
    by: str = ""
    """The fingerprint of the check that gave the verdict; empty where it does not matter."""


class Book:
    """The contents of an experiment's log."""

    def __init__(self, agent: str, messages: Iterable[Message]) -> None:
        """Read the log of the agent with this uuid."""
        self.terms: Mapping[str, Any] | None = None
        self.head = 0
        """The latest position that was read."""
        self.written_at = 0
        """When that was written, in milliseconds since 1970."""
        self.trials: dict[int, TrialRecord] = {}
        self.judged: dict[int, JudgedTrial] = {}
        for message in messages:
            if message.agent_uuid == agent:
                self._read(message)

    def has_gone_on(self, own: Iterable[Message]) -> bool:
        """Whether what the agent has written since is of an experiment; else it is read now, and does not matter."""
        later = [message for message in own if message.id > self.head]
        if any(message.data.keys() & {"terms", "verdicts", "number"} for message in later):
            return True
        self.head = max((message.id for message in later), default=self.head)
        return False

    def _read(self, message: Message) -> None:
        data, self.head, self.written_at = message.data, message.id, message.created_at
        if message.kind == Kind.NOTE and "terms" in data:
            self.terms = data["terms"]
        elif message.kind == Kind.NOTE and "verdicts" in data:
            for number, score, why, over, end in data["verdicts"]:
                self.judged[number] = JudgedTrial(Verdict(score, why, over), end, data.get("by", ""))
        elif message.kind == Kind.FORK and "number" in data:
            trial = TrialRecord(
                data["number"], data["child"], data.get("from", 0), data.get("prompt"), data["place"], data["arm"]
            )
            self.trials[trial.number] = trial


def birth_facts(trial: TrialRecord) -> dict[str, Any]:
    """The data of the message of a trial's birth, beside where it begins."""
    return {
        "number": trial.number,
        "from": trial.of,
        "prompt": trial.prompt,
        "place": trial.place,
        "arm": trial.arm,
    }


def verdicts_note(judged: Mapping[int, JudgedTrial]) -> dict[str, Any]:
    """The data of the note that says these verdicts, all of one run."""
    by = {one.by for one in judged.values() if one.by}
    return {
        **({"by": min(by)} if by else {}),
        "verdicts": [
            [number, one.verdict.score, one.verdict.why, one.verdict.over, one.end] for number, one in judged.items()
        ],
    }
