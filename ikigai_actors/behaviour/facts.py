"""The facts of an experiment, for its reports: histories, changes, models, times, and costs."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from time import localtime, strftime
from typing import Any

from ikigai_actors.behaviour.experiment import Experiment
from ikigai_actors.reach.trials import experiment_moment, outlives_process
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.text import iso_time
from ikigai_actors.verbs.text.budgets import dollar_text
from ikigai_actors.verbs.text.naming import name_by_uuid

_MOST = 5
"""The most agents that a report names."""

_TERMS = {
    "at": "up to message",
    "plan": "plan",
    "options": "options",
    "probe": "question",
    "change": "changed",
    "edit": "edited messages",
    "each": "replayed is each",
    "samples": "samples",
    "run": "tools that run",
}
"""The terms that a report shows, in this order, with their headings for people."""
_PLANS = {"BestOf", "Beam", "MCTS"}


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about an experiment for its report; empty for an experiment that was not begun."""

    experiment: AgentRecord | None
    names: Mapping[str, str]
    """The name of each agent in a report, by uuid."""
    of: tuple[str, ...]
    """The uuids of the agents whose histories the experiment uses."""
    terms: Mapping[str, Any]
    """The changes that were tried."""
    models: tuple[str, ...]
    """The models that answered, as ``provider:model``."""
    answers: Mapping[str, str]
    """The last texts of the living trials, by uuid."""
    ended_at: int
    """When the latest message of the experiment was written, in milliseconds since 1970."""
    trials: int
    judged: int
    tokens: int
    """The tokens that the trials and their judges have cost; the next field has the dollars."""
    micro_dollars: int
    stays: bool
    """Whether the database outlives the process, so that people can open the trials later."""

    def called(self, uuid: str) -> str:
        """Return the name of an agent in the report."""
        return self.names.get(uuid) or name_by_uuid(uuid)

    def whose(self, uuid: str) -> str:
        """Return the name of the agent whose history a trial uses; empty if the experiment uses only one history."""
        return self.called(uuid) if len(self.of) > 1 else ""

    def trial(self, number: int, uuid: str) -> str:
        """Return a trial's number and agent as text."""
        return f"{number} ({self.called(uuid)})"

    def described(self) -> list[tuple[str, str]]:
        """Return the facts for people, as pairs of a heading and a text."""
        if self.experiment is None:
            return []
        more = f" and {len(self.of) - _MOST:,} more" if len(self.of) > _MOST else ""
        dollars = f", {dollar_text(self.micro_dollars)}" if self.micro_dollars else ""
        facts = [
            ("experiment", self.called(self.experiment.uuid)),
            ("history of", ", ".join(map(self.called, self.of[:_MOST])) + more),
            *((label, _words(self.terms.get(name))) for name, label in _TERMS.items()),
            ("answered by", ", ".join(name.removesuffix(":") for name in self.models)),
            ("when", _times(self.experiment.created_at, self.ended_at)),
            ("trials", f"{self.trials:,}, of which {self.judged:,} have a verdict"),
            ("cost", f"{self.tokens:,} tokens{dollars}"),
        ]
        if self.stays and self.trials:
            facts.append(("go to a trial", 'ikigai log ID shows it, ikigai prompt ID "Why?" asks it'))
        return [(name, text) for name, text in facts if text]

    def as_json(self) -> dict[str, Any]:
        """Return the facts as JSON data."""
        agent = self.experiment
        return {
            "experiment": None if agent is None else agent.uuid,
            "name": None if agent is None else agent.name,
            "label": None if agent is None else self.called(agent.uuid),
            "of": list(self.of),
            "terms": dict(self.terms),
            "models": list(self.models),
            "began_at": None if agent is None else iso_time(agent.created_at),
            "ended_at": iso_time(self.ended_at) if self.ended_at else None,
            "trials": self.trials,
            "judged": self.judged,
            "tokens": self.tokens,
            "usd": self.micro_dollars / 1_000_000,
        }


def facts_of(experiment: Experiment, of: Iterable[str] = (), named: Collection[str] = ()) -> Facts:
    """Read the facts about an experiment.

    Args:
        of: uuids of the agents whose histories the experiment uses.
        named: further agents that the report names.
    """
    system, book = experiment.agent.system, experiment.book
    trials = [trial.agent for trial in book.trials.values()]
    terms, top = book.terms or {}, experiment.agent.uuid
    whose = tuple(dict.fromkeys(of)) or ((terms["of"],) if "of" in terms else ())

    moment = experiment_moment(system, top, trials, (*whose, *named))
    latest = moment.latest
    replies = {uuid: message for uuid, message in latest.items() if message.kind in (Kind.ASSISTANT, Kind.OUTPUT)}
    return Facts(
        next((agent for agent in moment.agents if agent.uuid == top), None),
        moment.labels,
        whose,
        terms,
        tuple(dict.fromkeys(name for reply in replies.values() if (name := _model(reply)))),
        {uuid: reply.content for uuid, reply in replies.items()},
        max((message.created_at for message in latest.values()), default=book.written_at),
        len(trials),
        len(book.judged),
        sum(record.spent_tokens for record in moment.branch),
        sum(record.spent_usd for record in moment.branch),
        outlives_process(system),
    )


def _model(reply: Message) -> str:
    return str(reply.data.get("model", ""))


def _words(term: object) -> str:
    """Return a term as text for people: a line for each setting or edit, and lists with commas."""
    match term:
        case dict():
            return "\n".join(f"{name}: {'removed' if value is None else value}" for name, value in term.items())
        case [str(plan), *arguments] if plan in _PLANS:
            return f"{plan}({', '.join(map(str, arguments))})"
        case [float(), int(), _]:  # the plan of a bisection
            return ""
        case None | 1 | "turn":  # as it is where nothing is said
            return ""
        case list():
            return "\n".join("go on" if value is None else str(value) for value in term)
    return str(term)


def _times(first: int, last: int) -> str:
    began, ended = (strftime("%Y-%m-%d %H:%M:%S", localtime(at / 1000)) for at in (first, last))
    day, _, time = ended.partition(" ")
    return f"{began} to {time if began.startswith(day) else ended}"
