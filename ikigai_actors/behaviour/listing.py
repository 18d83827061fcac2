"""Experiments in lists of agents and on the observer's page."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ikigai_actors.behaviour.book import Book, TrialRecord
from ikigai_actors.reach.agent_lists import labels_among
from ikigai_actors.reach.notebooks import Notebooks, first_notes_of_named, own_messages_of
from ikigai_actors.reach.reading import PageQuery, named_agent
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.mail.mail import preview
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.verbs.text.naming import name_by_uuid
from ikigai_actors.verbs.text.tree import ListedTrials

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import System

MOST_TRIALS = 5
"""The number of trials of an experiment that a list shows, if it has more than twice as many."""


def books_of(notebooks: Notebooks) -> dict[str, Book]:
    """Return the books of experiments, by uuid. A book that cannot be read is left out; fsck reports it. Pure."""
    books: dict[str, Book] = {}
    for uuid, messages in notebooks.items():
        with suppress(KeyError, TypeError, ValueError):
            books[uuid] = Book(uuid, messages)
    return books


def books_and_first_trials(notebooks: Notebooks) -> tuple[dict[str, Book], frozenset[str]]:
    """Return the books of experiments, and the agents of those trials of each that a list always shows. Pure."""
    books = books_of(notebooks)
    firsts = (trial.agent for book in books.values() for _, trial in sorted(book.trials.items())[:MOST_TRIALS])
    return books, frozenset(firsts)


def listed_trials(
    records: Sequence[AgentRecord],
    books: Mapping[str, Book],
    current: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> ListedTrials:
    """Return the texts about experiments for a list of agents. Pure.

    Args:
        books: the experiments' books, by uuid.
        current: an agent that is always listed.
        labels: what people are shown for each agent, by uuid; None where these are all agents.
    """
    names = labels_among(records) if labels is None else labels
    notes: dict[str, str] = {}
    folded: set[str] = set()
    for uuid, book in books.items():
        trials = [trial for _, trial in sorted(book.trials.items())]
        left_out = [trial.agent for trial in trials[MOST_TRIALS:]] if len(trials) > 2 * MOST_TRIALS else []
        more = f", {len(left_out):,} of them not shown: ikigai log {names.get(uuid, uuid)}" if left_out else ""
        notes[uuid] = f"{summary_of(book, names)}{more}"
        folded.update(left for left in left_out if left != current)
        for trial in trials:
            notes[trial.agent] = f"trial {trial.number} {_said(book, trial)}"
    return ListedTrials(notes, _with_all_below(records, folded))


def verdict_lines(book: Book, message: Message) -> list[str]:
    """Return a line for each verdict in a message of an experiment, with the trial's agent and prompt."""
    numbers = [verdict[0] for verdict in message.data.get("verdicts", ()) if isinstance(verdict, list) and verdict]
    lines = []
    for number in numbers:
        if (trial := book.trials.get(number)) is not None:
            why = " ".join(book.judged[number].verdict.why.split())
            lines.append(f"trial {number} ({name_by_uuid(trial.agent)}) {_said(book, trial)} {why}".rstrip())
    return lines


def _said(book: Book, trial: TrialRecord) -> str:
    said = book.judged.get(trial.number)
    score = "" if said is None else "not judged " if said.verdict.score is None else f"{said.verdict.score:g} "
    arm = f" ({trial.arm})" if trial.arm else ""
    return f"{score}“{preview(trial.prompt or 'go on')}”{arm}"


def summary_of(book: Book, names: Mapping[str, str] = {}) -> str:
    """Return a line about an experiment: its agents, the number of trials, and the best and the worst score."""
    terms = book.terms or {}
    of = terms.get("of")
    what = f"{terms.get('verb')} of {names.get(of, name_by_uuid(of))}" if isinstance(of, str) else terms.get("verb")
    scores = {
        number: score for number, judgement in book.judged.items() if (score := judgement.verdict.score) is not None
    }
    said = f"{what}: {len(book.trials):,} trial{'' if len(book.trials) == 1 else 's'}, {len(book.judged):,} judged"
    if not scores:
        return said
    best = max(scores, key=lambda number: (scores[number], -number))
    worst = min(scores, key=lambda number: (scores[number], number))
    ends = {"best": best} if best == worst else {"best": best, "worst": worst}
    for which, number in ends.items():
        said += f", {which} {scores[number]:g} (trial {number}, {name_by_uuid(book.trials[number].agent)})"
    return said


def _with_all_below(records: Sequence[AgentRecord], agents: Collection[str]) -> frozenset[str]:
    """Return the uuids of the agents and of all their descendants."""
    below: dict[str | None, list[str]] = {}
    for record in records:
        below.setdefault(record.supervisor_uuid, []).append(record.uuid)
    uuids, waiting = set(agents), list(agents)
    while waiting:
        children = [child for child in below.get(waiting.pop(), ()) if child not in uuids]
        uuids.update(children)
        waiting += children
    return frozenset(uuids)


def _experiments(system: "System", query: PageQuery) -> list[dict[str, Any]]:
    """Return the agents that are experiments, each with its terms."""
    notes = first_notes_of_named(system)
    return [{"agent": note.agent_uuid, "terms": note.data["terms"]} for note in notes if "terms" in note.data]


def _experiment(system: "System", query: PageQuery) -> dict[str, Any]:
    agent = named_agent(system, query).uuid
    book = Book(agent, own_messages_of(system, agent))
    return {
        "agent": agent,
        "terms": book.terms,
        "trials": [trial._asdict() for trial in book.trials.values()],
        "verdicts": {
            number: {"end": judgement.end, **asdict(judgement.verdict)} for number, judgement in book.judged.items()
        },
    }


EXPERIMENT_READINGS: Mapping[str, Callable[["System", PageQuery], object]] = {
    "experiments": _experiments,
    "experiment": _experiment,
}
"""The readings about experiments for the page, by the last part of the request's path."""
