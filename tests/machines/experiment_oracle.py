"""The laws of experiments, as the commits of a run tell them.

untouched   of a trial its experiment alone tells, which supervises it; the log that it goes on from gets nothing
inside      who has the setting ``effects`` starts no tool that is not named there, and asks nobody; what it calls
            besides gets its recorded result, the k-th call the k-th one, and nothing of it happens
settings    a trial has the settings of then, what its experiment changes, and ``effects``
numbers     births and verdicts count 1, 2, 3 … in the book (fsck's law of experiments, at each commit)
bounded     an experiment has no more trials than its plan asks for, and no more without a verdict than it may
function    a trial goes on from where its plan says, however its history has grown; what the book says at the end is
            what the plan asks for, given the verdicts, and each verdict is that on the trial with its number. The trial
            of a log is shown the prompts that counted before its turn; that of a step ends with its first reply
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.agent.turn.calls import GIVE_RESULT
from ikigai_actors.agent.turn.record import NOT_RECORDED
from ikigai_actors.behaviour.book import Book
from ikigai_actors.behaviour.plans.plan import GO, Trial, TrialPlan, Verdict
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.records.messages.reply_data import INTERRUPTED
from ikigai_actors.testing.machine.history_oracle import Copy, CopyingOracle
from ikigai_actors.testing.machine.memory_check import settings_in
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation


class Bounds(NamedTuple):
    """What an experiment may do."""

    most: int
    """Trials."""
    parallel: int
    """Of these in flight."""


class Beginning(NamedTuple):
    """What an experiment is to do, as its rule has it."""

    starts: Sequence[tuple[str, int]]
    """For each place of its plan, whose history trials go on from, and from which position."""
    plan: Callable[[], TrialPlan]
    """Makes its plan, as it is before the first trial."""
    judged: Callable[[int], Verdict | None] | None = None
    """The verdict on each trial, by its number; None when that cannot be told from the number."""
    replayed: Collection[int] = ()
    """Where the turns begin that are replayed."""


class Tape:
    """What the calls of an agent get that does nothing outside, one after the other."""

    def __init__(self, effects: Mapping[str, Any]) -> None:
        """Begin for an agent that was born with this setting."""
        self.effects = effects
        self.record: list[tuple[str, Mapping[str, Any], str]] = [
            (name, arguments, content) for name, arguments, content, *_ in effects.get("record", ())
        ]
        self._due: dict[str, str] = {}
        self._made: Counter[str] = Counter()

    def hears(self, reply: Message) -> None:
        """Take a reply of the agent's model."""
        for call in calls_in(reply):
            same = [content for name, arguments, content in self.record if (name, arguments) == (call.name, call.input)]
            key = f"{call.name} {json.dumps(call.input, sort_keys=True)}"
            self._due[call.id] = same[self._made[key]] if self._made[key] < len(same) else NOT_RECORDED
            self._made[key] += 1

    def due(self, call: str) -> str | None:
        """The result of a call, by its id."""
        return self._due.get(call)


@dataclass(slots=True)
class Begun:
    """An experiment, as the commits so far tell it."""

    terms: Mapping[str, Any]
    beginning: Beginning
    trials: list[str] = field(default_factory=list)
    """The agents, in the order of their numbers."""
    ends: list[int] = field(default_factory=list)
    """Where each judged one ended."""


class ExperimentOracle:
    """Follows the experiments of a run."""

    def __init__(self, world: "Simulation", histories: CopyingOracle, bounds: Bounds, outside: str) -> None:
        """Make one for a world without any commit yet.

        Args:
            world: the world.
            histories: knows every history, with the commit that is looked at.
            bounds: what each experiment in it may do.
            outside: what models write into all that they call in trials alone, where nothing comes of it.
        """
        self._world, self._histories, self._bounds, self._outside = world, histories, bounds, outside
        self.tapes: dict[str, Tape] = {}
        """Of each agent with the setting ``effects``."""
        self.begun: dict[str, Begun] = {}
        """The experiments, by the uuid of the agent that each is."""
        self.beginning: Beginning | None = None
        """What the next experiment is to do that begins."""

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check one commit."""
        messages = [
            Message(
                written.row[0], written.row[1], written.row[2], written.row[3], json.loads(written.row[4] or "{}"), 0
            )
            for written in changes
            if isinstance(written, Written) and written.table == "messages"
        ]
        births = {fork.agent_uuid: fork for fork in messages if fork.kind == Kind.FORK and "by" in fork.data}
        for change in changes:
            if isinstance(change, RanStatement) and change.query == "register":
                self._registered(change.parameters, births)
            if any(self._outside in text for text in _texts(change)):
                self._broken(f"inside: what the model of a trial calls is done: {change}")
        for message in messages:
            self._wrote(message, births)
        for uuid, experiment in self.begun.items():
            born, judged = len(experiment.trials), len(experiment.ends)
            if born > self._bounds.most or born - judged > self._bounds.parallel:
                self._broken(f"bounded: experiment {uuid} has {born} trials, and {judged} verdicts")

    def _registered(self, parameters: Mapping[str, Any], births: Mapping[str, Message]) -> None:
        uuid = parameters["uuid"]
        if parameters["parent"] in self.tapes:
            self.tapes[uuid] = Tape(self.tapes[parameters["parent"]].effects)
        if uuid in births and parameters["supervisor"] != (maker := births[uuid].data["by"]):
            self._broken(f"untouched: trial {uuid} of {maker} is supervised by {parameters['supervisor']}")

    def _wrote(self, message: Message, births: Mapping[str, Message]) -> None:
        uuid, kind, data = message.agent_uuid, message.kind, message.data
        if kind == Kind.CONFIGURE and "effects" in data:
            if data["effects"] is not None:
                self.tapes[uuid] = Tape(data["effects"])
            elif self.tapes.pop(uuid, None) is not None and uuid not in births:
                self._broken(f"inside: the setting effects of agent {uuid} is taken off")
        elif kind == Kind.FORK and (birth := births.get(data.get("child", ""))) is not None:
            if birth.data["by"] != uuid:
                self._broken(f"untouched: the log of agent {uuid} tells of trial {data['child']} of {birth.data['by']}")
            elif "number" in data:
                self._born(self.begun[uuid], data)
        elif kind == Kind.NOTE and "terms" in data:
            assert self.beginning is not None  # the rule that begins it has said so
            self.begun[uuid] = Begun(data["terms"], self.beginning)
        elif kind == Kind.NOTE and uuid in self.begun:
            experiment = self.begun[uuid]
            for *_, end in data.get("verdicts", ()):
                if experiment.terms.get("each") == "step":
                    self._check_step(experiment.trials[len(experiment.ends)], end)
                experiment.ends.append(end)
        if (tape := self.tapes.get(uuid)) is not None:
            self._check_inside(message, tape)

    def _check_inside(self, message: Message, tape: Tape) -> None:
        uuid, kind, data = message.agent_uuid, message.kind, message.data
        if kind == Kind.ASSISTANT:
            tape.hears(message)
        elif kind == Kind.APPROVAL or (kind == Kind.TOOL_CALL and message.content not in tape.effects["run"]):
            self._broken(f"inside: agent {uuid} writes {kind} {dict(data)}")
        elif kind == Kind.TOOL_RESULT and data["name"] not in (GIVE_RESULT, *tape.effects["run"]):
            due = tape.due(data["tool_use_id"])
            if due is not None and message.content != due:
                self._broken(f"inside: agent {uuid} is given {message.content!r} for {data['name']}, expected {due!r}")
        elif kind == Kind.ERROR and (call := data.get("diverged")) and tape.due(call) != NOT_RECORDED:
            self._broken(f"inside: agent {uuid} is told that {data['tool']} is not in the record, which has it")

    def _born(self, experiment: Begun, data: Mapping[str, Any]) -> None:
        """Check where a trial goes on from, and with which settings."""
        uuid, before, start = data["child"], data["from"], (data["of"], data["at"])
        experiment.trials.append(uuid)
        due = experiment.beginning.starts[data["place"]]
        of, at = due if experiment.terms["verb"] in ("replay", "regress") else start
        if before:
            due = experiment.trials[before - 1], experiment.ends[before - 1]
        if start != due:
            self._broken(f"function: trial {data['number']} of {experiment.terms} goes on from {start}, expected {due}")
        if experiment.terms.get("each") == "log":
            self._check_log(uuid, experiment.beginning.starts[data["place"]], experiment.beginning.replayed)
        changed = experiment.terms.get("change", {}) if data["arm"] == "change" else {}
        has = settings_in(self._histories.histories[uuid].written)
        expected = {**settings_in(self._histories.histories[of].written[:at]), **changed}
        if {**has, "effects": None} != {**expected, "effects": None} or uuid not in self.tapes:
            self._broken(f"settings: trial {uuid} is born with {has}, expected {expected}")

    def _check_log(self, uuid: str, recorded: tuple[str, int], replayed: Collection[int]) -> None:
        """Check the prompts before the turn of a trial. Turns that are not replayed are left out behind the first."""
        (of, at), trial = recorded, self._histories.histories[uuid]
        counted = _prompts(self._histories.histories[of].copy_of_beginning(at, ""))
        texts = [text for place, text in _prompts(trial) if place <= trial.fork]
        due = [text for place, text in counted if place < min(replayed) or place in replayed]
        if not (_is_within(due, texts) and _is_within(texts, [text for _, text in counted])):
            self._broken(f"function: the trial {uuid} of a log is shown the prompts {texts}, expected {due}")

    def _check_step(self, uuid: str, end: int) -> None:
        """Check that a trial has ended with its first reply. What a person has asked of it since does not count."""
        trial, replies = self._histories.histories[uuid], 0
        for _, kind, _, data in trial.written[trial.fork : end]:
            if kind in (Kind.USER, Kind.ERROR, Kind.INTERRUPTED):
                return
            replies += kind == Kind.ASSISTANT and json.loads(data or "{}").get("stop_reason") != INTERRUPTED
            if replies > 1:
                self._broken(f"function: the trial {uuid} of a step has more than one reply")

    def _broken(self, what: str) -> None:
        self._world.process.broken(what)

    def check_function(self, uuid: str, book: Book) -> None:
        """Check ``function``: a book has the trials that its plan asks for by number, given the verdicts in order."""
        beginning = self.begun[uuid].beginning
        plan = beginning.plan()
        asked = answered = 0
        while asked < len(book.trials):
            if asked - answered < self._bounds.parallel and (trial := plan.ask()) is not None:
                asked += 1
                if (pending := _asked_for(book, asked)) != (due := _facts(trial)):
                    raise Broken(f"function: the book has {pending}, and the plan asks for {due}")
            elif answered + 1 in book.judged:
                answered += 1
                plan.tell(answered, verdict := book.judged[answered].verdict)
                if beginning.judged is None or verdict.over:  # one that ended without an answer is not judged
                    continue
                if (score := _score(beginning.judged(answered))) != verdict.score:
                    raise Broken(f"function: trial {answered} of {book.terms} has {verdict}, and was judged {score}")
            else:
                raise Broken(f"function: the plan does not ask for trial {asked + 1} of {book.terms} yet")


def _prompts(history: Copy) -> list[tuple[int, str]]:
    """The prompts that a model is shown, with their positions."""
    shown = {*history.shown}
    return [(place, text) for place, kind, text, _ in history.written if kind == Kind.USER and place in shown]


def _is_within(some: Sequence[str], all_of: Sequence[str]) -> bool:
    """Whether these are among those, in the same order."""
    rest = iter(all_of)
    return all(element in rest for element in some)


def _texts(change: StoredChange) -> Iterator[str]:
    """The texts that a change writes, without what a model said, and what is told of that."""
    if isinstance(change, Written) and change.table == "messages":
        values: Sequence[Any] = [] if change.row[2] in (Kind.ASSISTANT, Kind.TOOL_RESULT) else [change.row[3]]
    else:
        values = change.row if isinstance(change, Written) else list(change.parameters.values())
    return (value for value in values if isinstance(value, str))


def _asked_for(book: Book, number: int) -> tuple[object, ...]:
    born = book.trials[number]
    return number, born.of, born.prompt, born.place, born.arm


def _facts(trial: Trial) -> tuple[object, ...]:
    return trial.number, trial.of, None if trial.prompt is GO else trial.prompt, trial.place, trial.arm


def _score(verdict: Verdict | None) -> float | None:
    return None if verdict is None else verdict.score
