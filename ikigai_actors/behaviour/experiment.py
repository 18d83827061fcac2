"""An experiment is an agent: the trials are its children, and its log is the book of their births and verdicts.

    experiment = begin_experiment(system, {"verb": "search", …}, RunConfig(parallel=8))
    experiment.run(plan, start, judge)

The experiment alone forks. A history that is looked at is never written, may be that of a dead agent, and its actor is
not involved. What is durable is the book alone (`ikigai_actors.behaviour.book`), written in units of verdicts and of
the births that depend on them:

    crash before a unit         the same trials are asked for again, with new uuids
    unit committed              they are found by their numbers; open turns are resumed, and paid again as any turn's
    reply, before its verdict   it is judged again; nothing could depend on the first verdict

Trial i is asked for when 1 … i − parallel are told, so what is asked for is a function of the seed and the verdicts,
whatever finishes first. Trials are children of the experiment, under its budget, and do nothing outside: their setting
``effects`` (`ikigai_actors.agent.turn.record`) is born with them.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.behaviour.book import Book, JudgedTrial, TrialRecord, verdicts_note
from ikigai_actors.behaviour.plans.plan import GO, Trial, TrialPlan, Verdict, verdict_of
from ikigai_actors.behaviour.runs import RunConfig
from ikigai_actors.behaviour.turns import own_messages
from ikigai_actors.errors import (
    AgentDead,
    AgentNotFound,
    BadInput,
    ExperimentDiffers,
    IkigaiError,
    NoTurn,
    ReplayDiverged,
    StoreConflict,
    TurnInterrupted,
)
from ikigai_actors.providers.base import Reply
from ikigai_actors.records import registry
from ikigai_actors.records.heads import heads_of
from ikigai_actors.records.identity import new_agent_uuid
from ikigai_actors.records.messages import NO_DATA, Kind
from ikigai_actors.records.replies import outcome_of
from ikigai_actors.system.ref import AgentRef, System

T = TypeVar("T")

MOST_AT_ONCE = 1_000
"""Trials of one unit at most."""


class FollowUp(NamedTuple):
    """A prompt that a trial gets when it has answered the one before."""

    prompt: str
    data: Mapping[str, Any] = NO_DATA
    """As the data of a prompt."""


class TrialStart(NamedTuple):
    """Where a trial begins, and how."""

    of: str
    """Whose history it inherits, by uuid."""
    at: int
    """The last position that it inherits."""
    prompt: str | None
    data: Mapping[str, Any] = NO_DATA
    """As the data of a prompt."""
    settings: Mapping[str, Any] = NO_DATA
    """What differs from the settings at that position; `effects` among them."""
    go: bool = False
    """Whether it goes on at once with what its history ends with, without a prompt."""
    begin: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    """Copies of messages that it begins with: `TrialBirth.begin`."""
    then: tuple[FollowUp, ...] = ()
    """What it is prompted with afterwards. Of these none has a verdict of its own: the last answer is judged."""


@dataclass(frozen=True, slots=True)
class TrialRun:
    """What came of a trial: what a judge is given."""

    trial: Trial
    """The trial, as the plan asked for it."""
    agent: AgentRef
    """The agent that it is."""
    reply: Reply | None
    """Its reply; None when its turn failed."""
    error: IkigaiError | None = None
    """Why it has none."""

    @property
    def text(self) -> str:
        """The text of its reply; empty when it has none."""
        return "" if self.reply is None else self.reply.text

    @property
    def diverged(self) -> bool:
        """Whether its model has called what the record does not have."""
        return isinstance(self.error, ReplayDiverged)


Judge = Callable[[TrialRun], Any]
"""Returns a number, True or False, a `Verdict`, None for what it cannot judge, or a future of one of these."""


@dataclass(slots=True)
class _Progress:
    """How far a run is."""

    told: int = 0
    """So many trials have their verdict."""
    asked: list[Trial] = field(default_factory=list)
    prefixes: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    """What each trial in flight shares with its siblings, by number: whose history, up to where, and its arm."""
    is_warm: set[tuple[str, int, str]] = field(default_factory=set)
    """The prefixes with which a trial has answered: they are in the cache of the model's service."""
    unwritten: dict[int, JudgedTrial] = field(default_factory=dict)
    """Verdicts that are not in the book yet."""
    births: list[tuple[Trial, TrialStart]] = field(default_factory=list)
    """Trials that are not born yet."""
    then: dict[int, tuple[FollowUp, ...]] = field(default_factory=dict)
    """The prompts that follow in each trial, by number."""
    verdicts: dict[int, Future[JudgedTrial | None]] = field(default_factory=dict)
    """Of trials that are judged on threads of their own."""


class Experiment:
    """The agent that makes trials, with its book."""

    def __init__(self, agent: AgentRef, book: Book, how: RunConfig) -> None:
        self.agent = agent
        """The agent that it is."""
        self.book = book
        """What its log says."""
        self.resumed = bool(book.trials)
        """Whether it was begun before."""
        self.ended = ""
        """Why the latest run has ended before its plan: ``budget``, or ``stopped``; empty when it has not."""
        self._how = how
        self._system = agent.system

    def agent_of(self, number: int) -> AgentRef:
        """The agent of a trial, by its number. Raises `AgentNotFound` when there is no such trial."""
        if number not in self.book.trials:
            raise AgentNotFound(f"Experiment {self.agent.uuid} has no trial {number}.", self.agent.uuid)
        return self._system.handle(self.book.trials[number].agent)

    def end_of(self, number: int) -> int:
        """The last position of a trial that was judged."""
        return self.book.judged[number].end

    def run(self, plan: TrialPlan, start: Callable[[Trial], TrialStart], judge: Judge) -> None:
        """Make the trials that a plan asks for, and tell it their verdicts, until it is over.

        Args:
            plan: as it is before its first trial. What the book has is played through it first.
            start: where a trial begins. It is called once for each that has no verdict yet.
            judge: is called on this thread, for trials in the order of their numbers; one that `blocks` on a thread of
                each trial, as soon as that has answered.

        Raises:
            ExperimentDiffers: the plan asks for another trial than the book has.
            IkigaiError: what a unit raises. What was committed stays, and another run goes on from there.
        """
        self.ended = ""
        now = _Progress()
        while True:
            while len(now.asked) - now.told < self._how.parallel and (trial := plan.ask()) is not None:
                self._ask(now, trial, start)
            ready = self._known(now)
            if ready is None:
                if not self._may_be_judged_first(now, judge):
                    self._write(now)  # before anything is waited for
                if now.told == len(now.asked):
                    return
                ready = self._judged_or_kept(now, judge)
                if ready is None:
                    return
                now.unwritten[now.told + 1] = ready
                self.book.judged[now.told + 1] = ready
            now.told += 1
            if now.told in now.prefixes:
                now.is_warm.add(now.prefixes.pop(now.told))
            plan.tell(now.told, ready.verdict)

    def _ask(self, now: _Progress, trial: Trial, start: Callable[[Trial], TrialStart]) -> None:
        now.asked.append(trial)
        born = self.book.trials.get(trial.number)
        if born is None:
            begun = start(trial)
            now.births.append((trial, begun))
            _follow(now, trial, begun)
        elif (born.of, born.place, born.arm) != (trial.of, trial.place, trial.arm) or born.prompt != _said(trial):
            raise ExperimentDiffers(
                f"Experiment {self.agent.uuid} has another trial {trial.number} in its book than the plan asks for: "
                "its options have changed. Give it another name."
            )
        elif trial.number not in self.book.judged:
            _follow(now, trial, start(trial))
            agent = self.agent_of(trial.number)
            if agent.state == Phase.INTERRUPTED:  # the process that ran it has ended in its turn
                _resumed(agent)

    def _known(self, now: _Progress) -> JudgedTrial | None:
        """The verdict of the next trial, when the book has it."""
        return self.book.judged.get(now.told + 1) if now.told < len(now.asked) else None

    def _write(self, now: _Progress) -> None:
        """Commit verdicts, and the births that depend on them, as one unit.

        Births that wait for a cache, and those behind them, wait: the book has them in order.
        """
        ready = _before_cold(now) if self._how.warm else len(now.births)
        births, now.births = now.births[:ready], now.births[ready:]
        for place in range(0, max(1, len(births)), MOST_AT_ONCE):
            self._write_unit(now, births[place : place + MOST_AT_ONCE])

    def _write_unit(self, now: _Progress, births: list[tuple[Trial, TrialStart]]) -> None:
        if not now.unwritten and not births:
            return
        random_bytes = self._system.random_bytes
        born = {trial.number: new_agent_uuid(random_bytes) for trial, _ in births}
        trials = tuple(
            on.TrialBirth(born[trial.number], *begun[:5], _facts(trial), begun.go, begun.begin)
            for trial, begun in births
        )
        self._commit(verdicts_note(now.unwritten), trials)
        for trial, _ in births:
            self.book.trials[trial.number] = TrialRecord(
                trial.number, born[trial.number], trial.of, _said(trial), trial.place, trial.arm
            )
        now.unwritten = {}

    def _commit(self, note: dict[str, Any], trials: tuple[on.TrialBirth, ...]) -> None:
        """Write a unit into the book as it was read.

        Raises `StoreConflict` when another process has written trials or verdicts into it.
        """
        while True:
            written: Future[int] = Future(self.agent.uuid)
            self._system.tell(self.agent.uuid, on.ForkTrials(note, trials, written, self.book.head))
            try:
                self.book.head = written.get() + len(trials)
            except StoreConflict:
                if self.book.has_gone_on(own_messages(self.agent)):
                    raise StoreConflict(
                        f"Experiment {self.agent.uuid} is gone on with by another process, or another thread. What it "
                        "has written is kept: run the same again when that has ended."
                    ) from None
            else:
                return

    def _may_be_judged_first(self, now: _Progress, judge: Judge) -> bool:
        """Whether the next trial has answered, so that its verdict goes into the same unit as those before it.

        No more than a quarter of the window waits to be born meanwhile: the models have the rest to do.
        """
        trial = now.asked[now.told] if now.told < len(now.asked) else None
        if trial is None or trial.number not in self.book.trials or len(now.births) >= self._how.parallel // 4:
            return False
        if getattr(judge, "blocks", False) or now.then[trial.number]:
            return False
        return self.agent_of(trial.number).record.turn == 0

    def _judged_or_kept(self, now: _Progress, judge: Judge) -> JudgedTrial | None:
        """The verdict on the next trial. Whatever ends the run here, the verdicts before it are written."""
        ready = None
        try:
            ready = self._judged(now, judge)
        finally:
            if ready is None:
                with suppress(IkigaiError):
                    self._write_unit(now, [])
        return ready

    def _judged(self, now: _Progress, judge: Judge) -> JudgedTrial | None:
        """The verdict on the next trial; None when its turn cannot go on.

        A judge that blocks is at all trials of the window meanwhile, each on its own thread.
        """
        if not getattr(judge, "blocks", False):
            return self._verdict(now, now.asked[now.told], judge)
        for trial in now.asked[now.told :]:
            if trial.number in self.book.trials and trial.number not in (self.book.judged.keys() | now.verdicts.keys()):
                now.verdicts[trial.number] = _on_a_thread(partial(self._verdict, now, trial, judge))
        return now.verdicts[now.told + 1].get()

    def _verdict(self, now: _Progress, trial: Trial, judge: Judge) -> JudgedTrial | None:
        agent = self.agent_of(trial.number)
        then, retries = list(now.then[trial.number]), self._how.retries
        while True:
            if (then or agent.record.turn) and not self._waited(now, agent):
                return None
            run = _run_of(trial, agent)
            if run.error is None:
                follow_up = _next_of(then, agent)
                if follow_up is None:
                    break
                self._system.tell(agent.uuid, on.Prompt(follow_up.prompt, Future(agent.uuid), data=follow_up.data))
            elif run.diverged or not retries or not _resumed(agent):
                break
            else:
                retries -= 1
        [head] = self._system.store.read(lambda tx: heads_of(tx, [agent.uuid]))
        verdict = judge(run)
        verdict = verdict_of(verdict.get() if isinstance(verdict, Future) else verdict)
        if run.error is not None and verdict.score is None and not verdict.why:
            verdict = Verdict(None, str(run.error), over=True)
        return JudgedTrial(verdict, head.position)

    def _waited(self, now: _Progress, agent: AgentRef) -> bool:
        """Wait until a trial has nothing to do; False when it is paused, and so are all others in flight."""
        [why] = self.agent.wait([agent]).values()
        if why not in (WaitResult.BUDGET, WaitResult.STOPPED):
            return True
        others = [self.agent_of(one.number) for one in now.asked[now.told :] if one.number in self.book.trials]
        self.agent.wait(others)  # what they leave of the budget may be enough
        [why] = self.agent.wait([agent]).values()
        if why is WaitResult.BUDGET or why is WaitResult.STOPPED:
            self.ended = str(why)
            return False
        return True


def begin_experiment(system: System, terms: Mapping[str, Any], how: RunConfig) -> Experiment:
    """Begin an experiment, or find the one of this name that lives, to go on with it.

    Args:
        system: where it is made.
        terms: what is tried, as JSON. The same terms go on.
        how: how it is run. Without a name it has one of the verb and a hash of the terms; one that is to be fresh gets
            a number behind the name that another one has.

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
    while (found := _living(under, called)) is not None and how.fresh:
        stem, _, number = called.rpartition(".")
        called = f"{stem}.{int(number) + 1}" if stem and number.isdigit() else f"{called}.2"
    agent = found if found is not None else under.fork(name=called, budget=how.budget)
    experiment = Experiment(agent, Book(agent.uuid, agent.history(all=True)), how)
    if experiment.book.is_blank:  # new; or a crash came between its birth and its terms
        experiment._commit({"terms": known}, ())
        experiment.book.terms = known
        return experiment
    if experiment.book.terms is None:
        raise ExperimentDiffers(f"Agent {called} is no experiment: give the experiment another name.")
    if experiment.book.terms != known:
        raise ExperimentDiffers(
            f"Experiment {called} has other terms. Give it another name, or fresh=True to begin a new one."
        )
    return experiment


def _living(under: AgentRef, name: str) -> AgentRef | None:
    try:
        record = under.system.store.read(lambda tx: registry.find(tx, name))
    except AgentNotFound:
        return None
    return under.system.handle(record.uuid) if record.living and record.name == name else None


def _said(trial: Trial) -> str | None:
    return None if trial.prompt is GO else str(trial.prompt)


def _facts(trial: Trial) -> dict[str, Any]:
    """What the book has of a trial beside where it begins."""
    return {
        "number": trial.number,
        "from": trial.of,
        "prompt": _said(trial),
        "place": trial.place,
        "arm": trial.arm,
    }


def _follow(now: _Progress, trial: Trial, begun: TrialStart) -> None:
    """Keep of a trial's start what is needed until it is judged."""
    now.then[trial.number] = begun.then
    now.prefixes[trial.number] = (begun.of, begun.at, trial.arm)


def _before_cold(now: _Progress) -> int:
    """How many of the births come before the first that waits for a sibling's answer.

    A trial that goes on from another one finds the prefix that the other one's request has written.
    """
    in_flight = range(now.told + 1, len(now.asked) - len(now.births) + 1)
    cold = {now.prefixes[number] for number in in_flight if number in now.prefixes} - now.is_warm
    for place, (trial, _) in enumerate(now.births):
        prefix = now.prefixes[trial.number]
        if trial.of == 0 and prefix in cold:
            return place
        if prefix not in now.is_warm:
            cold.add(prefix)
    return len(now.births)


def _next_of(then: Sequence[FollowUp], agent: AgentRef) -> FollowUp | None:
    """The next prompt of a trial that has answered: its log says how many it got."""
    if not then:
        return None
    asked = sum(one.kind == Kind.USER and "from" not in one.data for one in own_messages(agent))
    return then[asked - 1] if asked <= len(then) else None


def _on_a_thread(work: Callable[[], T]) -> Future[T]:
    """What work returns, or raises, from a thread of its own."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            value = work()
        except BaseException:
            done.set_exception()
        else:
            done.set(value)

    current_threads().thread(run, "ikigai-judge").start()
    return done


def _run_of(trial: Trial, agent: AgentRef) -> TrialRun:
    """What came of a trial that has nothing to do. One that was never prompted has the answer that it inherits."""
    try:
        return TrialRun(trial, agent, agent.reply())
    except NoTurn:
        outcome = outcome_of(reversed(agent.history()))
        return TrialRun(trial, agent, outcome if isinstance(outcome, Reply) else None)
    except IkigaiError as error:
        return TrialRun(trial, agent, None, error)


def _resumed(agent: AgentRef) -> bool:
    """Have a turn that failed, or was cut off, go on; return whether there was one."""
    try:
        return agent.resume()
    except (AgentDead, TurnInterrupted):
        return False
