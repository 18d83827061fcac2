"""The slash commands about experiments on histories.

A bisection whose judge is the person needs nothing but its book: each command goes on with it, up to the next answer
that waits for a verdict. So it lasts over a restart of the shell.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import click

from ikigai_actors.errors import BadInput
from ikigai_actors.records.log.heads import section
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.messages.settings import parse_setting
from ikigai_actors.shell.text.counts import counted
from ikigai_actors.shell.text.harmless import one_line
from ikigai_actors.shell.text.naming import named
from ikigai_actors.shell.verbs.arguments import TEXT
from ikigai_actors.shell.verbs.place import ShellPlace
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.handles.ref import AgentRef, System

if TYPE_CHECKING:
    from ikigai_actors.behaviour.book import Book
    from ikigai_actors.behaviour.results import ExperimentResult
    from ikigai_actors.behaviour.trials import TrialRun


class AwaitsVerdict(Exception):
    """An answer that the person has not judged."""

    def __init__(self, run: "TrialRun") -> None:
        super().__init__(run)
        self.run = run


@click.command("/experiments")
@click.pass_obj
def list_experiments(shell: ShellPlace) -> None:
    """Show the experiments that live: what each looks at, and how far it is. /kill --cascade ends one."""
    found = list(_experiments(shell.system))
    for agent, book in found:
        terms = book.terms or {}
        of = f" of {named(shell.system.handle(terms['of']))}" if "of" in terms else ""
        judged = f"{len(book.judged)} of {counted(len(book.trials), 'trial')} judged"
        shell.screen.line(f"{named(agent)}: {terms.get('verb')}{of}, {judged}")
    if not found:
        shell.screen.line("There is no experiment.", dim=True)


@click.command("/replay")
@click.argument("change", metavar="[SETTING=VALUE]...", type=TEXT, nargs=-1)
@click.pass_obj
def replay_here(shell: ShellPlace, change: tuple[str, ...]) -> None:
    """Replay the turns of this agent, with other settings, and show what differs.

    Calls of tools are answered from the record, and nothing is done outside. The agent gets no message.
    """
    from ikigai_actors.behaviour.replays import replay
    from ikigai_actors.behaviour.turns import recorded
    from ikigai_actors.shell.text.trials import same_or_different, trial_lines

    changed = {}
    for text in change:
        name, equals, value = text.partition("=")
        if not equals:
            raise BadInput(f"Expected SETTING=VALUE, got {text!r}. For one: /replay model=openai:gpt-5")
        changed[name] = parse_setting(name, value)
    turns = recorded(shell.current)
    if not turns:
        raise BadInput(f"{named(shell.current)} has taken no turn that was answered.")
    begin = partial(replay, turns, change=changed, on_trial=trial_lines(shell.screen.line, same_or_different))
    _say(shell, begin)
    found = shell.wait_for(begin)
    shell.screen.block(found.text())


@click.command("/bisect")
@click.argument("question", type=TEXT, nargs=-1, required=True)
@click.pass_obj
def bisect_here(shell: ShellPlace, question: tuple[str, ...]) -> None:
    """Find the first bad turn of this agent: forks of it are asked a QUESTION, and you judge the answers.

    /good, /bad or /skip after each; you may err now and then. The agent itself is not asked.
    """
    from ikigai_actors.behaviour.bisections import bisect

    how: dict[str, Any] = {"probe": " ".join(question)}
    _say(shell, partial(bisect, shell.current, lambda run: None, **how))
    _go_on(shell, how)


@click.command("/good")
@click.pass_obj
def call_good(shell: ShellPlace) -> None:
    """Call the latest answer of a bisection good."""
    _judge(shell, True)


@click.command("/bad")
@click.pass_obj
def call_bad(shell: ShellPlace) -> None:
    """Call the latest answer of a bisection bad."""
    _judge(shell, False)


@click.command("/skip")
@click.pass_obj
def skip_answer(shell: ShellPlace) -> None:
    """Say of the latest answer of a bisection that it cannot be judged."""
    _judge(shell, None)


_SHOWN: WeakKeyDictionary[ShellPlace, str | None] = WeakKeyDictionary()
"""The bisection of which each shell has shown something last, by name."""

COMMANDS = (list_experiments, replay_here, bisect_here, call_good, call_bad, skip_answer)


def _say(shell: ShellPlace, begin: Callable[..., "ExperimentResult"]) -> None:
    """Show what an experiment asks, before it does."""
    shell.screen.line(shell.wait_for(lambda: begin(dry_run=True)).forecast.text(), dim=True)


def _experiments(system: System) -> Iterator["tuple[AgentRef, Book]"]:
    """The experiments that live: the first of their notes says the terms."""
    from ikigai_actors.behaviour.book import Book
    from ikigai_actors.behaviour.turns import own_messages

    for record in system.agents():
        if record.living and record.name is not None:
            agent, look = system.handle(record.uuid), partial(_beginning, record.uuid, record.fork_message_id)
            if Book(record.uuid, system.store.read(look)).terms is not None:
                yield agent, Book(record.uuid, own_messages(agent))


def _beginning(uuid: str, start: int, tx: Transaction) -> list[Message]:
    return section(tx, uuid, start, start + 3)


def _judge(shell: ShellPlace, verdict: bool | None) -> None:
    """Go on with the bisection of the current agent that waits for a verdict."""
    name, terms, number = _awaited(shell)
    if _SHOWN.get(shell, name) != name:  # the one that was shown has ended: nobody has seen this answer
        number = 0
    sure, most, _ = terms["plan"]
    how = {"probe": terms["probe"], "sure": sure, "most": most, "at": terms["at"], "name": name}
    how["parallel"] = terms.get("parallel", 1)
    _go_on(shell, how, number, verdict)


def _awaited(shell: ShellPlace) -> tuple[str | None, Mapping[str, Any], int]:
    """The bisection of the current agent that waits for a verdict: its name, its terms, and the number of the trial.

    Among several, the one whose answer this shell showed last is taken; else the one that was written to last.
    """
    shown = _SHOWN.get(shell)
    waiting = []
    for experiment, book in _experiments(shell.system):
        terms = book.terms or {}
        left = [number for number in book.trials if number not in book.judged]
        if terms.get("verb") == "bisect" and terms["of"] == shell.current.uuid and terms["probe"] and left:
            name = experiment.record.name
            waiting.append((name == shown, book.written_at, name, terms, min(left)))
    if not waiting:
        raise BadInput(f'No bisection of {named(shell.current)} waits for a verdict: /bisect "QUESTION" begins one.')
    return max(waiting, key=lambda one: one[:2])[2:]


def _go_on(shell: ShellPlace, how: Mapping[str, Any], judged: int = 0, verdict: bool | None = None) -> None:
    """Bisect up to the next answer that waits for the person, and show that; or what was found."""
    from ikigai_actors.behaviour.bisections import bisect
    from ikigai_actors.shell.text.trials import good_or_bad, trial_lines

    agent, show = shell.current, trial_lines(shell.screen.line, good_or_bad)

    def judge(run: "TrialRun") -> bool | None:
        if run.trial.number == judged:
            return verdict
        raise AwaitsVerdict(run)

    try:
        found = shell.wait_for(lambda: bisect(agent, judge, on_trial=show, **how))
    except AwaitsVerdict as waits:
        if (experiment := waits.run.agent.supervisor) is not None:
            _SHOWN[shell] = experiment.record.name
        shell.screen.block(waits.run.text or str(waits.run.error))
        shell.screen.line(one_line(f"Answer {waits.run.trial.number} to “{how['probe']}”: /good, /bad or /skip?"))
        return
    _SHOWN[shell] = found.experiment.agent.record.name
    words = (
        f"Message {found.position} ends the first bad turn"
        if found.position is not None
        else f"No step: {found.answer}"
    )
    shell.screen.line(f"{words} ({100 * found.sure:.1f} % sure, {counted(found.probes, 'answer')}).")
