"""An experiment is an agent: the trials are its children, and its log is the book of their births and verdicts.

    experiment = begin_experiment(system, {"verb": "search", …}, RunConfig(parallel=8))
    Driver(experiment, plan, start, judge, expected).run()

Only the experiment forks. A history under examination is never changed and may belong to a dead agent, and the actor of
its agent is not involved. Trials are children of the experiment, under its budget, and do nothing outside: their
setting ``effects`` (`ikigai_actors.agent.turn.record`) is born with them.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.behaviour.book import Book
from ikigai_actors.behaviour.forecasts import Forecast
from ikigai_actors.behaviour.runs import RunConfig
from ikigai_actors.behaviour.turns import own_messages
from ikigai_actors.errors import AgentNotFound, BadInput, ExperimentDiffers, NameTaken, StoreConflict
from ikigai_actors.reach.histories import living_of_name
from ikigai_actors.reach.trials import NewTrial, bear_trials, end_agent, unused_uuid
from ikigai_actors.system.handles.ref import AgentRef, System


class Experiment:
    """The agent that makes trials, with the book of their births and verdicts."""

    def __init__(self, agent: AgentRef, book: Book, how: RunConfig) -> None:
        self.agent = agent
        """The agent that is the experiment."""
        self.book = book
        """The contents of the experiment's log."""
        self.how = how
        """The options of the latest run."""
        self.resumed = bool(book.trials)
        """Whether the experiment was begun by an earlier call."""
        self.ended = ""
        """The reason why the latest run ended before its plan: ``budget``, ``stopped`` or ``dry run``; else empty."""
        self.forecast = Forecast()
        """The forecast before the first request of the latest run."""

    def agent_of(self, number: int) -> AgentRef:
        """Return the agent of a trial, by the trial's number. Raises `AgentNotFound` if there is no such trial."""
        if number not in self.book.trials:
            raise AgentNotFound(f"Experiment {self.agent.uuid} has no trial {number}.", self.agent.uuid)
        return self.agent.system.handle(self.book.trials[number].agent)

    def end_of(self, number: int) -> int:
        """Return the last position of a judged trial, by its number."""
        return self.book.judged[number].end

    def write(self, note: Mapping[str, Any], births: Sequence[NewTrial]) -> None:
        """Append a note and births to the book, as one unit.

        Raises `StoreConflict` when another process has written trials or verdicts into the book.
        """
        while True:
            try:
                self.book.head = bear_trials(self.agent, note, births, self.book.head) + len(births)
            except StoreConflict:
                if self.book.has_gone_on(own_messages(self.agent)):
                    raise StoreConflict(
                        f"Experiment {self.agent.uuid} is run by another process, or another thread. What it "
                        "has written is kept: run the same again when that has ended."
                    ) from None
            else:
                return


def begin_experiment(system: System, terms: Mapping[str, Any], how: RunConfig) -> Experiment:
    """Begin an experiment, or continue the living experiment of this name.

    Args:
        system: the system in which the experiment is made.
        terms: what is tried, as JSON. The same terms go on.
        how: how it is run. Without a name it has one of the verb and a hash of the terms; one that is to be fresh gets
            a number after the name that another one has. In a dry run one that is not there has the handle of an agent
            that does not exist.

    Raises:
        BadInput: `under` is an agent of another system.
        ExperimentDiffers: the agent of this name is no experiment, or has other terms.
    """
    under = how.under or system.root
    if under.system is not system:
        raise BadInput(f"Expected under to be an agent of the same database; {under.uuid} is of another one.")
    text = json.dumps(terms, sort_keys=True)
    known: Mapping[str, Any] = json.loads(text)
    called = how.name or f"{terms['verb']}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    while (living := living_agent(system, called)) is not None and how.fresh:
        stem, _, number = called.rpartition(".")
        called = f"{stem}.{int(number) + 1}" if stem and number.isdigit() else f"{called}.2"
    if living is None and how.dry_run:
        nobody = unused_uuid(system)
        experiment = Experiment(system.handle(nobody), Book(nobody, ()), how)
    else:
        agent = living if living is not None else under.fork(budget=how.budget)
        experiment = Experiment(agent, Book(agent.uuid, agent.history(all=True)), how)
    if living is None:
        if not how.dry_run:
            experiment.write({"terms": known}, ())
            try:
                give_name(experiment.agent, called)  # the last step: who has the name has terms
            except NameTaken:
                return begin_experiment(system, terms, how)  # another process has begun it meanwhile
        experiment.book.terms = known
        return experiment
    if experiment.book.terms is None:
        raise ExperimentDiffers(f"Agent {called} is no experiment: give the experiment another name.")
    if experiment.book.terms != known:
        raise ExperimentDiffers(
            f"Experiment {called} has other terms. Give it another name, or fresh=True to begin a new one."
        )
    return experiment


def give_name(agent: AgentRef, name: str) -> None:
    """Give a new agent its name; if the name is taken, kill the new agent. Raises `NameTaken`."""
    try:
        agent.rename(name)
    except NameTaken:
        end_agent(agent, f"another agent is named {name}")
        raise


def living_agent(system: System, name: str) -> AgentRef | None:
    """Return the living agent of this name; None if there is none."""
    record = living_of_name(system, name)
    return None if record is None else system.handle(record.uuid)
