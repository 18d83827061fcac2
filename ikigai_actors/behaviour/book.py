"""The book of an experiment: the log of the experiment's agent, with the births and verdicts of trials.

    note {"terms": …}                                        the terms of the experiment, once
    note {"verdicts": [[number, score, why, over, end], …]}  verdicts on trials, by number; "by" names the check
    fork {"child": …, "of": …, "at": …, "number": …}         the birth of a trial, an agent

A note and the births after it are one unit, so a trial that depends on a verdict is born with it or not at all.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ikigai_actors.behaviour.plans.plan import Verdict
from ikigai_actors.records.messages.messages import Kind, Message


class TrialRecord(NamedTuple):
    """The birth of a trial, as the book of its experiment records it."""

    number: int
    agent: str
    """The uuid of the trial's agent."""
    of: int
    """The number of the trial whose end this one continues; 0 for the start of the experiment."""
    prompt: str | None
    place: int
    arm: str


class JudgedTrial(NamedTuple):
    """A verdict on a trial, as the book of its experiment records it."""

    verdict: Verdict
    end: int
    """The last position of the trial when it was judged; trials that continue it are forked there."""
    by: str = ""
    """The fingerprint of the check that gave the verdict; empty if it does not matter."""


class Book:
    """The contents of an experiment's log: its terms, and the births and verdicts of its trials."""

    def __init__(self, agent: str, messages: Iterable[Message]) -> None:
        self.terms: Mapping[str, Any] | None = None
        self.head = 0
        """The position of the latest message that was read."""
        self.written_at = 0
        """The time, in milliseconds since 1970, at which the latest message was written."""
        self.trials: dict[int, TrialRecord] = {}
        self.judged: dict[int, JudgedTrial] = {}
        for message in messages:
            if message.agent_uuid == agent:
                self._read(message)

    def has_gone_on(self, own: Iterable[Message]) -> bool:
        """Return whether later messages of the agent belong to the experiment. If none does, count them as read."""
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
    """Return the data of the message that records a trial's birth, except the place where it begins."""
    return {
        "number": trial.number,
        "from": trial.of,
        "prompt": trial.prompt,
        "place": trial.place,
        "arm": trial.arm,
    }


def verdicts_note(judged: Mapping[int, JudgedTrial]) -> dict[str, Any]:
    """Return the data of the note that records these verdicts of one run."""
    by = {judgement.by for judgement in judged.values() if judgement.by}
    return {
        **({"by": min(by)} if by else {}),
        "verdicts": [
            [number, judgement.verdict.score, judgement.verdict.why, judgement.verdict.over, judgement.end]
            for number, judgement in judged.items()
        ],
    }
