"""Searches for the best continuation of a history, by durable forks."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Unpack

from ikigai_actors.arguments import check_count, check_plain_function, check_type, shown
from ikigai_actors.behaviour.driver import Driver
from ikigai_actors.behaviour.effects import SHARE, check_files, check_files_known, check_read_only, effects
from ikigai_actors.behaviour.expectations import expected_answer
from ikigai_actors.behaviour.experiment import Experiment, begin_experiment, give_name, living_agent
from ikigai_actors.behaviour.facts import Facts
from ikigai_actors.behaviour.judges import check_judge
from ikigai_actors.behaviour.pages import ExperimentReport, ReportCell, ReportRow, name_cell, number_cell
from ikigai_actors.behaviour.plans.plan import GO, UNJUDGED, Continuation, Trial
from ikigai_actors.behaviour.plans.search import MCTS, Beam, BestOf, SearchPlan
from ikigai_actors.behaviour.results import ExperimentResult
from ikigai_actors.behaviour.runs import RunConfig, RunOptions
from ikigai_actors.behaviour.trials import Judge, TrialStart, started
from ikigai_actors.errors import BadInput, NameTaken
from ikigai_actors.reach.trials import fork_position
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.system.births import Child
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.text import check_text


class SearchNode(NamedTuple):
    """A node in the tree of a search, as passed to a function that returns the node's options."""

    number: int
    """The number of the node's trial; 0 for the root."""
    text: str
    """The answer of the trial; empty at the root."""
    agent: AgentRef
    """The trial's agent; at the root, the agent whose history is searched from."""


class FoundTrial(NamedTuple):
    """A trial of a search: its number, its prompt, and its score."""

    number: int
    of: int
    """The number of the trial whose end this one continues; 0 for the root."""
    prompt: str | None
    score: float | None
    """The score; None if the trial was not judged, or could not be."""
    why: str = ""
    """The judge's reason for the score, or for its absence."""


@dataclass(frozen=True, slots=True, repr=False)
class Found(ExperimentResult):
    """The result of a search: the best trial, and all trials."""

    score: float | None
    """The best score; None if nothing could be judged."""
    number: int
    """The number of the best trial, the earliest among equals; 0 if there is none."""
    path: list[int]
    """The numbers of the trials from the root to the best one, in order."""
    agent: AgentRef | None
    """The agent of the best trial; None if nothing could be judged."""
    trials: list[FoundTrial]
    """All trials, in the order of their numbers."""

    def keep(self, name: str | None = None) -> AgentRef:
        """Fork the best trial out of the experiment: a normal agent whose calls have effects.

        When the search has kept its best trial under this name before, and that agent lives, returns that agent.

        Raises:
            BadInput: nothing was found.
            NameTaken: another agent has this name.
        """
        if self.agent is None:
            raise BadInput("Nothing was found that could be kept.")
        return kept(self.experiment, self.number, name)

    def _report(self, facts: Facts) -> ExperimentReport:
        agents = {number: trial.agent for number, trial in self.experiment.book.trials.items()}
        sentences = ["Nothing could be judged."]
        answer = "" if self.agent is None else facts.answers.get(self.agent.uuid) or self.agent.reply().text
        if self.score is not None:
            sentences = [f"{self.score:g} by trials {', '.join(map(str, self.path))}"]
        ended = [f"It ended before all was tried: {self.ended}."] if self.ended else []
        rows = [
            ReportRow(
                (
                    name_cell(facts.trial(trial.number, agents[trial.number])),
                    number_cell(trial.of or None),
                    ReportCell(trial.prompt or "go on"),
                    number_cell(trial.score),
                    ReportCell(trial.why),
                    ReportCell(facts.answers.get(agents[trial.number], "")),
                ),
                trial.number in self.path,
            )
            for trial in self.trials
        ]
        best = "nothing" if self.score is None else f"{self.score:g}"
        return ExperimentReport(
            f"Search: {best}",
            [*sentences, *([answer] if answer else []), *ended],
            [*sentences, *([answer] if self.agent is not None else []), *ended],
            ["trial", "after", "prompt", "score", "why", "answer"],
            rows,
            {
                "score": self.score,
                "path": self.path,
                "agent": None if self.agent is None else self.agent.uuid,
                "text": answer,
                "trials": [{**trial._asdict(), "agent": agents[trial.number]} for trial in self.trials],
                "ended": self.ended,
            },
        )


SearchOptions = Sequence[Continuation] | Callable[[SearchNode], Sequence[Continuation]]
"""The options: the same for every node, or a function that returns those of a node; it must always return the same for
the same node.
"""


def search(
    agent: AgentRef,
    judge: Judge,
    *,
    plan: SearchPlan,
    options: SearchOptions,
    at: int | None = None,
    seed: int = 0,
    tools: Sequence[str] = (),
    files: str = SHARE,
    **how: Unpack[RunOptions],
) -> Found:
    """Search for the best continuation of an agent's history.

    Each trial is a fork that gets one prompt. The agent itself gets no request and no message, and may be dead. The
    calls of a trial's model have no effects outside. After a crash, the same call goes on.

    Args:
        agent: the agent whose history is continued.
        judge: is called for each trial, when it has answered: see `TrialRun`.
        plan: `BestOf`, `Beam` or `MCTS`.
        options: prompts to go on with, or a function of a node that gives them; `GO` in place of one asks once more
            for an answer to what the history ends with, a prompt or results of calls.
        at: the position to continue from; None for the end of the history.
        seed: the seed of the plan's random choices.
        tools: tools that run in trials, by name; each must be declared as ``read_only``, or change no more than
            ``files`` lets it.
        files: ``overlay`` gives each trial files of its own in a workspace with ``on_fork="overlay"``, which its tools
            may change, as those of the agent were at the position. ``share`` gives none.
        how: the name of the experiment, its budget and the rest of `RunOptions`.

    Raises:
        BadInput: an argument cannot be used, or the files of then are not known.
        NotABoundary: at this position a history cannot be gone on from.
        ExperimentDiffers: the experiment of this name has other terms.
        HistoryPruned: the history was deleted.
    """
    check_type(agent, AgentRef, "agent", "a handle")
    if not isinstance(plan, BestOf | Beam | MCTS):
        raise BadInput(f"Expected plan to be a BestOf, a Beam or an MCTS; got {shown(plan)}.")
    check_count(seed, "seed")
    config = RunConfig.of(search, how)
    prompts = (
        check_plain_function(options, "options", "a function of a node")
        if callable(options)
        else _checked_options(options)
    )
    if prompts == []:
        raise BadInput("Expected options to be a list of prompts, or a function of a node; got no prompt at all.")
    system = agent.system
    check_judge(judge, system)
    place = fork_position(system, agent.uuid, at)
    run = check_read_only(system, tools, files=check_files(system, files))
    check_files_known(system, files, agent.uuid, [place])
    terms = {
        "verb": "search",
        "of": agent.uuid,
        "at": place,
        "plan": [type(plan).__name__, *(str(getattr(plan, slot)) for slot in plan.__slots__)],
        "options": None if callable(prompts) else [None if prompt is GO else prompt for prompt in prompts],
        "seed": seed,
        "parallel": config.parallel,
        "run": run,
        **({"files": files} if files != SHARE else {}),
    }
    if not callable(prompts) and GO in prompts:
        started(system, agent.uuid, place, GO, {})  # before anything is made
    expected = expected_answer(system, agent.uuid, place, judge=judge)
    experiment = begin_experiment(system, terms, config)

    def options_of(number: int) -> Sequence[Continuation]:
        if not callable(prompts):
            return prompts
        whose = experiment.agent_of(number) if number else agent
        text = whose.reply().text if number else ""
        return _checked_options(prompts(SearchNode(number, text, whose)))

    def start(trial: Trial) -> TrialStart:
        of, end = (experiment.agent_of(trial.of).uuid, experiment.end_of(trial.of)) if trial.of else (agent.uuid, place)
        return started(system, of, end, trial.prompt, {} if trial.of else {"effects": effects(run, files=files)})

    begun = plan.begin(options_of, random.Random(seed).randrange)
    Driver(experiment, begun, start, judge, lambda number: expected).run()
    return _found(experiment)


def kept(experiment: Experiment, number: int, name: str | None) -> AgentRef:
    """Fork a trial out of its experiment, below the experiment's supervisor.

    The fork has the present settings of the agent whose history was continued, so the fork gets no tool that was
    withdrawn since. The calls of the fork have effects again.
    """
    system, trial = experiment.agent.system, experiment.agent_of(number)
    assert experiment.book.terms is not None  # as it has trials
    of = experiment.book.terms["of"]
    above = experiment.agent.supervisor or system.root
    if name is not None and (other := living_agent(system, check_name(name))) is not None:
        if (other.record.parent_uuid, other.supervisor) == (trial.uuid, above):
            return other  # kept by an earlier call
        raise NameTaken(f"A living agent is named {name!r}: keep the best trial under another name.")
    now, then = system.handle(of).context().settings, trial.context().settings
    # `effects` among them
    changed = {setting: now.get(setting) for setting in {**then, **now} if now.get(setting) != then.get(setting)}
    winner = Child(trial, experiment.end_of(number), settings=changed)
    [agent] = above.fork_many([winner], note={"kept": number, "of": experiment.agent.uuid})
    if name is not None:
        give_name(agent, name)
    return agent


def _checked_options(options: object) -> list[Continuation]:
    if isinstance(options, str) or not isinstance(options, Sequence):
        raise BadInput(f"Expected options to be a list of prompts, or a function of a node; got {shown(options)}.")
    for option in options:
        if option is not GO and not check_text(option, "option").strip():
            raise BadInput("Expected each option to be a prompt, or GO; got blank text.")
    return list(options)


def _found(experiment: Experiment) -> Found:
    book = experiment.book
    trials = [
        FoundTrial(trial.number, trial.of, trial.prompt, said.score, said.why)
        for number, trial in sorted(book.trials.items())
        for said in (book.judged[number].verdict if number in book.judged else UNJUDGED,)
    ]
    scored = [(-trial.score, trial.number) for trial in trials if trial.score is not None]
    score, number = min(scored, default=(None, 0))
    path: list[int] = []
    at = number
    while at:
        path.insert(0, at)
        at = book.trials[at].of
    return Found(
        None if score is None else -score,
        number,
        path,
        experiment.agent_of(number) if number else None,
        trials,
        experiment=experiment,
    )
