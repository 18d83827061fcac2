"""Verbs about experiments on histories.

A bisection whose judge is the person needs nothing but its book: each command goes on with it, up to the next answer
that waits for a verdict. So the bisection outlives a restart of the shell.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.behaviour.book import Book
    from ikigai_actors.behaviour.results import ExperimentResult
    from ikigai_actors.behaviour.trials import TrialRun
    from ikigai_actors.system.handles.ref import AgentRef, System
    from ikigai_actors.verbs.place import Place, ShellPlace


class AwaitsVerdict(Exception):
    """Raised with the run of a trial whose answer the person must judge, to end the bisection for now."""

    def __init__(self, run: "TrialRun") -> None:
        super().__init__(run)
        self.run = run


@verb("experiments", script="", everywhere=True, needs=Right.LOOK)
def list_experiments(place: "Place") -> object:
    """Show the living experiments, each with the agent that it examines and its progress.

    kill --cascade ends an experiment.
    """
    rows = []
    for agent, book in _experiments(place.system):
        terms = book.terms or {}
        of = f" of {words.named(place.system.handle(terms['of']))}" if "of" in terms else ""
        judged = f"{len(book.judged)} of {words.counted(len(book.trials), 'trial')} judged"
        place.screen.line(f"{words.named(agent)}: {terms.get('verb')}{of}, {judged}")
        counts = {"judged": len(book.judged), "trials": len(book.trials)}
        rows.append(words.agent_row(agent) | {"verb": terms.get("verb"), "of": terms.get("of")} | counts)
    if not rows:
        place.screen.line("There is no experiment.", dim=True)
    return rows


@verb("replay", script="", needs=Right.PROMPT, callers=Callers.PEOPLE)
@click.argument("change", metavar="[SETTING=VALUE]...", type=TEXT, nargs=-1)
def replay_here(shell: "ShellPlace", change: tuple[str, ...]) -> None:
    """Replay the turns of this agent, with other settings, and show what differs.

    Calls of tools are answered from the record, and nothing is done outside. The agent gets no message.
    """
    from ikigai_actors.behaviour.replays import replay
    from ikigai_actors.behaviour.trial_lines import same_or_different, trial_lines
    from ikigai_actors.behaviour.turns import recorded
    from ikigai_actors.errors import BadInput
    from ikigai_actors.verbs.opening import written_settings

    changed = written_settings(change, "SETTING=VALUE", "/replay model=openai:gpt-5")
    turns = recorded(shell.current)
    if not turns:
        raise BadInput(f"{words.named(shell.current)} has taken no turn that was answered.")
    begin = partial(replay, turns, change=changed, on_trial=trial_lines(shell.screen.line, same_or_different))
    _say(shell, begin)
    result = shell.wait_for(begin)
    shell.screen.block(result.text())


@verb("bisect", script="", needs=Right.PROMPT, callers=Callers.PEOPLE)
@click.argument("question", type=TEXT, nargs=-1, required=True)
def bisect_here(shell: "ShellPlace", question: tuple[str, ...]) -> None:
    """Find the first bad turn of this agent: its forks answer a QUESTION, and you judge the answers.

    Type /good, /bad or /skip after each answer; you may err now and then. The agent itself gets no message.
    """
    from ikigai_actors.behaviour.bisections import bisect

    how: dict[str, Any] = {"probe": " ".join(question)}
    _say(shell, partial(bisect, shell.current, lambda run: None, **how))
    _go_on(shell, shell.current, how)


@verb("good", needs=Right.PROMPT)
def call_good(place: "Place", agent: "AgentRef") -> object:
    """Call the latest answer of a bisection good."""
    return _judge(place, agent, True)


@verb("bad", needs=Right.PROMPT)
def call_bad(place: "Place", agent: "AgentRef") -> object:
    """Call the latest answer of a bisection bad."""
    return _judge(place, agent, False)


@verb("skip", needs=Right.PROMPT)
def skip_answer(place: "Place", agent: "AgentRef") -> object:
    """Say of the latest answer of a bisection that it cannot be judged."""
    return _judge(place, agent, None)


_SHOWN: "WeakKeyDictionary[Place, str | None]" = WeakKeyDictionary()
"""The name of the bisection whose answer each place has shown last."""


def _say(shell: "ShellPlace", begin: Callable[..., "ExperimentResult"]) -> None:
    """Show the forecast of an experiment, by a dry run of ``begin``."""
    shell.screen.line(shell.wait_for(lambda: begin(dry_run=True)).forecast.text(), dim=True)


def _experiments(system: "System") -> Iterator["tuple[AgentRef, Book]"]:
    """Yield the living experiments, each with its book."""
    from ikigai_actors.behaviour.listing import books_of
    from ikigai_actors.reach.notebooks import living_notebooks

    for uuid, book in books_of(living_notebooks(system)).items():
        yield system.handle(uuid), book


def _judge(place: "Place", agent: "AgentRef", verdict: bool | None) -> object:
    """Go on with the bisection of an agent that waits for a verdict."""
    name, terms, number = _awaited(place, agent)
    if _SHOWN.get(place, name) != name:  # the one that was shown has ended: nobody has seen this answer
        number = 0
    sure, most, _ = terms["plan"]
    how = {"probe": terms["probe"], "sure": sure, "most": most, "at": terms["at"], "name": name}
    how["parallel"] = terms.get("parallel", 1)
    return _go_on(place, agent, how, number, verdict)


def _awaited(place: "Place", agent: "AgentRef") -> tuple[str | None, Mapping[str, Any], int]:
    """Return the bisection of an agent that waits for a verdict: its name, its terms, and the number of the trial.

    Among several, take the bisection whose answer this place showed last; else the one written to last.
    """
    from ikigai_actors.errors import BadInput

    shown = _SHOWN.get(place)
    waiting = []
    for experiment, book in _experiments(place.system):
        terms = book.terms or {}
        left = [number for number in book.trials if number not in book.judged]
        if terms.get("verb") == "bisect" and terms["of"] == agent.uuid and terms["probe"] and left:
            name = experiment.record.name
            waiting.append((name == shown, book.written_at, name, terms, min(left)))
    if not waiting:
        raise BadInput(f'No bisection of {words.named(agent)} waits for a verdict: /bisect "QUESTION" begins one.')
    return max(waiting, key=lambda asked: asked[:2])[2:]


def _go_on(
    place: "Place", agent: "AgentRef", how: Mapping[str, Any], judged: int = 0, verdict: bool | None = None
) -> object:
    """Bisect up to the next answer that the person must judge, and show it; or show the result."""
    from ikigai_actors.behaviour.bisections import bisect
    from ikigai_actors.behaviour.trial_lines import good_or_bad, trial_lines

    show = trial_lines(place.screen.line, good_or_bad)

    def judge(run: "TrialRun") -> bool | None:
        if run.trial.number == judged:
            return verdict
        raise AwaitsVerdict(run)

    try:
        result = place.wait_for(lambda: bisect(agent, judge, on_trial=show, **how))
    except AwaitsVerdict as waits:
        if (experiment := waits.run.agent.supervisor) is not None:
            _SHOWN[place] = experiment.record.name
        place.screen.block(waits.run.text or str(waits.run.error))
        number = waits.run.trial.number
        place.screen.line(words.one_line(f"Answer {number} to “{how['probe']}”: /good, /bad or /skip?"))
        return words.agent_row(agent) | {"answer": number, "text": waits.run.text}
    _SHOWN[place] = result.experiment.agent.record.name
    first_bad = (
        f"Message {result.position} ends the first bad turn"
        if result.position is not None
        else f"No step: {result.answer}"
    )
    place.screen.line(f"{first_bad} ({100 * result.sure:.1f} % sure, {words.counted(result.probes, 'answer')}).")
    return words.agent_row(agent) | {"position": result.position, "sure": result.sure, "answers": result.probes}
