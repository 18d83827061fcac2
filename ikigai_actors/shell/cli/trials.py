"""The work of the commands for experiments. Each function returns the output and the exit status."""

import json as json_text
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ikigai_actors.behaviour.bisections import bisect
from ikigai_actors.behaviour.checks import Check, same_calls, same_text, schema
from ikigai_actors.behaviour.checks import calls as calls_check
from ikigai_actors.behaviour.files import turns_of_file
from ikigai_actors.behaviour.fingerprints import known_as
from ikigai_actors.behaviour.plans.plan import UNJUDGED, Verdict
from ikigai_actors.behaviour.plans.search import MCTS, Beam, BestOf, SearchPlan
from ikigai_actors.behaviour.programs import run_program
from ikigai_actors.behaviour.regressions import RegressionReport, evaluate, regress
from ikigai_actors.behaviour.replays import replay
from ikigai_actors.behaviour.results import ExperimentResult
from ikigai_actors.behaviour.searches import Found, search
from ikigai_actors.behaviour.trial_lines import good_or_bad, same_or_different, score, trial_lines
from ikigai_actors.behaviour.trials import Judge, OnTrial, TrialRun
from ikigai_actors.behaviour.turns import ANSWERED, RecordedTurns, Turn, recorded
from ikigai_actors.errors import BadInput
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.reach.databases import check_there
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.shell.cli.notices import without_effect
from ikigai_actors.shell.cli.opening import opened
from ikigai_actors.shell.cli.progress import progress_bar
from ikigai_actors.verbs.opening import Options, named_object, written_settings
from ikigai_actors.verbs.text.naming import named

if TYPE_CHECKING:
    from ikigai_actors.system.attached import AttachedSystem
    from ikigai_actors.system.system import ActorSystem

R = TypeVar("R", bound=ExperimentResult)

_Tell = Callable[[str], object]
STATUS = {"pass": 0, "fail": 1, "unsure": 3}
NOT_JUDGED = 125
"""Exit status of a program that cannot judge, as for ``git bisect run``."""
LAST_STATUS = 127
"""The highest exit status of a working program. A higher one means that a signal or a broken program ended it."""
PROGRAM_TIMEOUT = 60.0
"""The default seconds after which a judging program is ended."""


class Program(NamedTuple):
    """A program that judges answers: the command, and its time limit."""

    command: list[str]
    timeout: float
    """The seconds after which the program is ended."""


class Display(NamedTuple):
    """The options that all five commands share: how an experiment is shown, and what the person allows."""

    dry_run: bool
    """Whether only the forecast is shown."""
    yes: bool
    """Whether another model or service may read the recorded histories."""
    html: str | None
    """The file that gets a page, too."""
    json: bool
    tell: _Tell
    """Shows a line beside the result."""

    def outcome(
        self,
        begin: "partial[R]",
        change: Mapping[str, Any] = NO_DATA,
        finish: Callable[[R], Mapping[str, Any]] = lambda result: NO_DATA,
    ) -> tuple[str, int]:
        """Run an experiment with its forecast before it; return the output and the exit status.

        Raises the errors of the experiment, and `BadInput`.

        Args:
            begin: carries it out, or makes its forecast.
            change: the settings that differ.
            finish: is called with the result, and gives more of it as JSON.
        """
        _check_page(self.html)
        before = begin(dry_run=True)
        if self.dry_run:
            return before.forecast.json() if self.json else before.forecast.text(), 0
        self._announce(before, change)
        planned = before.forecast.trials
        with progress_bar("trials") as advance:
            result = begin(on_trial=_counting(begin.keywords["on_trial"], planned, advance))
        if result.ended:
            self.tell(f"It has ended before its plan ({result.ended}); after a grant the same command goes on.")
        more = finish(result)
        if self.html is not None:
            _write_page(self.html, result)
        status = STATUS[result.verdict] if isinstance(result, RegressionReport) else 0
        if not self.json:
            return result.text(), status
        return json_text.dumps(json_text.loads(result.json()) | more, ensure_ascii=False), status

    def _announce(self, before: ExperimentResult, change: Mapping[str, Any]) -> None:
        """Print the plan of an experiment before it begins.

        Raises `BadInput` if a model would read the history that has not read it so far, and the person has not agreed.
        """
        planned = before.forecast
        if before.resumed:
            self.tell(
                f"Goes on with {named(before.experiment.agent)}: the verdicts that it has stay, whatever judges now. "
                "--name begins another."
            )
        self.tell(planned.text())
        names_one = bool(change.get("model") or change.get("compact_model"))
        if (planned.new_services or (names_one and planned.new_readers)) and not (self.yes or sys.stdout.isatty()):
            readers = ", ".join(name.removesuffix(":") for name in planned.new_readers)
            raise BadInput(f"Recorded histories would be read by {readers}: say --yes to let them.")


def search_history(
    options: Options,
    display: Display,
    *,
    agent: str,
    plan: str,
    texts: Sequence[str],
    program: str,
    timeout: float,
    enough: float | None,
    keep: str | None,
    **how: Any,
) -> tuple[str, int]:
    """Search for the best continuation of an agent's history; return the output and the exit status.

    ``how`` is as for `search`, which may raise.
    """
    judge = _judge(program, "--score", timeout, _score)
    if keep is not None:
        check_name(keep)
    how |= {"plan": parse_plan(plan, enough), "options": list(texts), "on_trial": trial_lines(display.tell, score)}

    def keep_best(outcome: Found) -> Mapping[str, Any]:
        winner = outcome.keep(keep) if keep and outcome.agent is not None else None
        return {"kept": None if winner is None else winner.uuid, "experiment": outcome.experiment.agent.uuid}

    with _opened(options) as system:
        return display.outcome(partial(search, system.agent(agent), judge, **how), finish=keep_best)


def bisect_history(
    options: Options, display: Display, *, agent: str, program: str, timeout: float, **how: Any
) -> tuple[str, int]:
    """Find the first bad turn of an agent's history; return the output and the exit status.

    ``how`` is as for `bisect`, which may raise.
    """
    judge = _judge(program, "--judge", timeout, _is_right)
    how |= {"on_trial": trial_lines(display.tell, good_or_bad)}
    with _opened(options) as system:
        return display.outcome(partial(bisect, system.agent(agent), judge, **how))


def replay_turns(options: Options, display: Display, *, edit: Sequence[str], **how: Any) -> tuple[str, int]:
    """Replay the turns of an agent or a file; return the output and the exit status.

    ``how`` is as for `_replayed`, which may raise.
    """
    how |= {"edit": parse_edits(edit), "on_trial": trial_lines(display.tell, same_or_different)}
    return _replayed(replay, options, display, **how)


def regress_turns(options: Options, display: Display, *, check: str, timeout: float, **how: Any) -> tuple[str, int]:
    """Test whether a change makes recorded turns worse; return the output and the exit status.

    ``how`` is as for `_replayed`, which may raise.
    """
    how |= {"check": parse_check(check, timeout), "on_trial": trial_lines(display.tell, score)}
    return _replayed(regress, options, display, **how)


def evaluate_agent(
    options: Options,
    display: Display,
    *,
    agent: str,
    texts: Sequence[str],
    file: str | None,
    program: str,
    timeout: float,
    change: Sequence[str],
    **how: Any,
) -> tuple[str, int]:
    """Measure how often an agent answers prompts rightly; return the output and the exit status.

    ``how`` is as for `evaluate`, which may raise.
    """
    judge = _judge(program, "--judge", timeout, _is_right)
    prompts, changed = parse_cases(texts, file), parse_change(change)
    how |= {"change": changed, "on_trial": trial_lines(display.tell, score)}
    with _opened(options) as system:
        return display.outcome(partial(evaluate, system.agent(agent), prompts, judge, **how), changed)


def _replayed(
    verb: Callable[..., ExperimentResult],
    options: Options,
    display: Display,
    *,
    source: str,
    change: Sequence[str],
    start: int,
    **how: Any,
) -> tuple[str, int]:
    """Return the output about the turns of an agent or a file, and the exit status. Raises the errors of the verb."""
    changed = parse_change(change)
    with _turns(options, source, start, display.tell) as turns:
        fresh = _is_file(source)  # a replay that is in the file is not gone on with
        return display.outcome(partial(verb, turns, change=changed, fresh=fresh, **how), changed)


def _judge(text: str, option: str, timeout: float, read: Callable[[Program, str], float | Verdict]) -> Judge:
    """Return the judge that calls a program. Raises `BadInput` if there is no such program."""
    program = Program(parse_program(text, option), timeout)

    def judge(run: TrialRun) -> float | Verdict:
        return read(program, run.text)

    return judge


def parse_plan(text: str, enough: float | None) -> SearchPlan:
    """Parse a search plan: best:8, beam:3x4, mcts:200. Raises `BadInput`."""
    kind, _, size = text.partition(":")
    numbers = [int(part) for part in size.split("x") if part.isdecimal()]
    match kind, numbers:
        case "best", [trials]:
            return BestOf(trials)
        case "beam", [width, depth]:
            return Beam(width, depth)
        case "mcts", [trials]:
            return MCTS(trials) if enough is None else MCTS(trials, enough=enough)
    raise BadInput(f"Expected --plan best:N, beam:WIDTHxDEPTH or mcts:TRIALS; got {text!r}.")


def parse_change(texts: Sequence[str]) -> dict[str, Any]:
    """Parse settings of the form SETTING=VALUE. Raises `BadInput`."""
    return written_settings(texts, "--with SETTING=VALUE", "--with system=@new.txt", _read)


def parse_edits(texts: Sequence[str]) -> dict[int, str]:
    """Parse edits of the form POSITION=TEXT; return the text for each position. Raises `BadInput`."""
    edits = {}
    for text in texts:
        position, equals, value = text.partition("=")
        if not equals or not position.isdecimal():
            raise BadInput(f"Expected --edit N=TEXT, got {text!r}. For one: --edit 17=@new.txt")
        edits[int(position)] = _read(value)
    return edits


def parse_cases(texts: Sequence[str], file: str | None) -> list[str]:
    """Return the given prompts, and the prompts of a file, which has one on each line.

    Raises `BadInput` if there are none.
    """
    lines = [] if file is None else [line for line in _read(f"@{file}").splitlines() if line.strip()]
    prompts = [*map(_read, texts), *lines]
    if not prompts:
        raise BadInput("Expected a prompt: --case PROMPT, or --cases FILE with a prompt a line.")
    return prompts


def parse_check(text: str, timeout: float = PROGRAM_TIMEOUT) -> Check:
    """Parse a check: calls, calls:subset, text, schema:MODULE:TYPE, or a program. Raises `BadInput`."""
    kind, _, rest = text.partition(":")
    if kind == "calls":
        return calls_check(rest) if rest else same_calls
    if text == "text":
        return same_text
    if kind == "schema":
        return schema(named_object(rest, "--check schema", "TYPE", "Answer"))

    command = Program(parse_program(text, "--check"), timeout)

    @known_as("program", command.command)
    def check(recorded: Turn, again: Turn) -> bool | Verdict | None:
        return _is_right(command, again.text) if again.how == ANSWERED else None

    return check


def parse_program(text: str, option: str) -> list[str]:
    """Return a program with its arguments. Raises `BadInput` if there is no such program."""
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise BadInput(f"Expected {option} PROGRAM with its arguments, got {text!r}: {error}.") from error
    if not command or shutil.which(command[0]) is None:
        raise BadInput(f"There is no program {' '.join(command[:1])!r} for {option}: name one, or its path.")
    return command


def _opened(options: Options) -> "ActorSystem | AttachedSystem":
    check_there(options.database)
    from ikigai_actors.system.attached import AttachedSystem

    system = opened(options, interactive=False)
    for line in without_effect(options) if isinstance(system, AttachedSystem) else []:
        print(line, file=sys.stderr)
    return system


@contextmanager
def _turns(options: Options, source: str, start: int, tell: _Tell) -> Iterator[list[Turn]]:
    """Yield the turns of an agent of the database, or of all agents of an exported file, which is read into memory."""
    if not _is_file(source):
        with _opened(options) as system:
            yield _chosen(recorded(system.agent(source)), start, tell)
        return
    tell(f"The turns are those of the file {source}.")
    with turns_of_file(source, **{**options.arguments(interactive=False), "approvals": "deny"}) as turns:
        yield _chosen(turns, start, tell)


def _is_file(source: str) -> bool:
    return Path(source).is_file()


def _chosen(turns: RecordedTurns, start: int, tell: _Tell) -> list[Turn]:
    if turns.left_out:
        left = ", ".join(f"{count} {how}" for how, count in turns.left_out.items())
        tell(f"Left out: turns that were not answered ({left}).")
    chosen = [turn for turn in turns if turn.opens >= start]
    if not chosen:
        behind = f" from message {start} on" if turns else ""
        raise BadInput(f"There is no turn that was answered{behind}, so there is nothing to replay.")
    return chosen


def _counting(show: OnTrial, total: int, advance: Callable[[int, int], object]) -> OnTrial:
    """Return a function that shows each judged trial, and advances the bar by one of ``total`` trials."""
    numbers = count(1)

    def judged(run: TrialRun, verdict: Verdict) -> None:
        show(run, verdict)
        done = next(numbers)
        advance(done, max(done, total))

    return judged


def _is_right(program: Program, text: str) -> bool | Verdict:
    """Return whether a program says that an answer is right, or why it cannot judge. Raises `BadInput`."""
    said = _called(program, text)
    return said if isinstance(said, Verdict) else said[0] == 0


def _score(program: Program, text: str) -> float | Verdict:
    """Return the number that a program prints for an answer, or why it cannot judge. Raises `BadInput`."""
    said = _called(program, text)
    if isinstance(said, Verdict):
        return said
    status, printed = said
    try:
        return float(printed.split()[-1])
    except (IndexError, ValueError) as error:
        name = program.command[0]
        raise BadInput(f"Expected {name} to print a number; it printed {printed!r}, status {status}.") from error


def _called(program: Program, text: str) -> tuple[int, str] | Verdict:
    """Call a program with a text; return its status and output, or why it cannot judge. Raises `BadInput`."""
    command, timeout = program
    try:
        done = run_program(command, text, timeout, shows_errors=True)
    except subprocess.TimeoutExpired:
        return Verdict(None, f"{command[0]} took longer than {timeout:g} seconds")
    except OSError as error:
        raise BadInput(f"The program {command[0]} cannot be run: {error}.") from error
    if done.status == NOT_JUDGED:
        return UNJUDGED
    if not 0 <= done.status <= LAST_STATUS:
        raise BadInput(
            f"The program {command[0]} broke: it ended with status {done.status}. Fix it and run the same "
            "command again: the verdicts so far are kept."
        )
    return done.status, done.printed


def _read(value: str) -> str:
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"The file {value[1:]!r} cannot be read: {reason}.") from error


def _check_page(file: str | None) -> None:
    """Check, before anything is paid for, that a page can be written to a file. Raises `BadInput`."""
    if file is None:
        return
    folder = Path(file).parent
    if Path(file).is_dir() or not (folder.is_dir() and os.access(folder, os.W_OK)):
        reason = (
            "it is a directory" if Path(file).is_dir() else f"{str(folder)!r} is no directory that you may write to"
        )
        raise BadInput(f"The file {file!r} cannot be written: {reason}.")


def _write_page(file: str, result: ExperimentResult) -> None:
    try:
        Path(file).write_text(result.html(), "utf-8")
    except OSError as error:
        raise BadInput(f"The file {file!r} cannot be written: {error.strerror}.") from error
