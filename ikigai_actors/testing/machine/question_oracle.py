"""Questions to people, checked by the commits: the invariant ``question``.

A question is asked once, and takes the steps of its terms in order, each once and while it is open. The commit that
takes the last step also writes the default for the agent, and not before its time. A question ends once: with a
person's answer and name, with its default after the last step, or with its call. The commit of an answer or a default
posts the event of the end. The answer of the person with the confirmation of being first counts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.question_terms import DEFAULT, QuestionTerms
from ikigai_actors.records.outbox.events import QUESTION_ANSWERED, QUESTION_EXPIRED
from ikigai_actors.records.questions.asked import ASK, EXPIRED, RUNTIME, VOID
from ikigai_actors.records.questions.questions import open_questions
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation

_DECISIONS = (QUESTION_ANSWERED, QUESTION_EXPIRED)


@dataclass(slots=True)
class ExpectedQuestion:
    """A question that a simulated run has asked, with its state by the commits so far."""

    agent: str
    call: str
    kind: str
    terms: QuestionTerms
    asked_at: int
    level: int = 0
    how: str = ""
    """The way in which the question ended; empty while it is open."""
    by: str = ""


class QuestionOracle:
    """Checks the questions of a run, and the people who answer them."""

    def __init__(self, world: "Simulation") -> None:
        self._world = world
        self._known: dict[str, ExpectedQuestion] = {}
        self._offers: dict[str, bool | None] = {}
        self._first: dict[str, str] = {}

    @property
    def to_people(self) -> list[str]:
        """Return the ids of the questions of models in order, whether open or closed."""
        return [name for name, question in self._known.items() if question.kind == ASK]

    def offered(self, answer: bool | None) -> str:
        """Record that a person is about to answer a question; return a unique name for the person."""
        by = f"person {len(self._offers) + 1}"
        self._offers[by] = answer
        return by

    def heard(self, name: str, by: str, *, first: bool) -> None:
        """Check the confirmation that a person got about whether the answer was the first."""
        known = self._known[name]
        if first != (known.by == by) or not known.how:
            raise Broken(f"question: {by} heard to be {'first' if first else 'late'}, and {name} is {known}")

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the questions that a commit asks, steps or ends."""
        decided: set[tuple[str, str]] = set()
        posted: set[tuple[str, str]] = set()
        for change in changes:
            if not isinstance(change, RanStatement):
                continue
            parameters = change.parameters
            match change.query:
                case "add_question":
                    self._asked(parameters)
                case "step_question":
                    self._steps(parameters, changes)
                case "settle_question":
                    decided |= self._ends(parameters, changes)
                case "bury_questions":
                    self._bury(parameters["agents"])
                case "post_event" if parameters["kind"] in _DECISIONS:
                    posted.add((parameters["kind"], parameters["about"]))
        if posted != decided:
            self._broken(f"a commit posts {posted}, and decides {decided}")

    def check_rest(self) -> None:
        """Check that no step of a question is due. Called when nothing can happen any more."""
        now = self._world.clock.now_ms()
        for row in self._world.process.looked_at.read(open_questions):
            if row.next_at is not None and row.next_at <= now:
                raise Broken(f"question: the step {row.next} of {row.id} was due at {row.next_at}; it is {now}")

    def _asked(self, parameters: Any) -> None:
        if parameters["id"] in self._known:
            self._broken(f"{parameters['id']} is asked twice")
        terms = QuestionTerms.decoded(parameters["terms"])
        self._known[parameters["id"]] = ExpectedQuestion(
            parameters["agent"], parameters["call"], parameters["kind"], terms, parameters["now"]
        )

    def _steps(self, parameters: Any, changes: Sequence[StoredChange]) -> None:
        known = self._known[parameters["id"]]
        steps = known.terms.steps()
        if known.how or parameters["level"] != known.level + 1 or known.level >= len(steps):
            self._broken(f"{parameters['id']} takes step {parameters['level']}, and is {known}")
            return
        step, known.level = steps[known.level], parameters["level"]
        left = [decision for decision in _decisions_left(changes) if decision[1]["question"] == parameters["id"]]
        if len(left) != (step.what == DEFAULT) or any(at < known.asked_at + step.after for at, _ in left):
            self._broken(f"{parameters['id']}, {known}, takes the step {step}, and leaves {left}")

    def _ends(self, parameters: Any, changes: Sequence[StoredChange]) -> set[tuple[str, str]]:
        """Note the end of a question; return the event of that end."""
        name, how, by = parameters["id"], parameters["how"], parameters["by"] or ""
        known = self._known[name]
        if known.how:
            self._broken(f"{name} ends as {how} by {by}, and is {known}")
        known.how, known.by = how, by
        if how == VOID:
            return set()
        expired = how == EXPIRED
        if expired != (by == RUNTIME) or (expired and known.level < len(known.terms.steps())):
            self._broken(f"{name} ends as {how} by {by}, and is {known}")
        if known.kind == ASK:
            default = None if known.terms.default == "deny" else known.terms.default
            wanted = default if expired else self._offers.get(by)
            if (result := _answer_in(changes, known)) != wanted or (not expired and by not in self._offers):
                self._broken(f"{name} ends with {result} by {by}, who has said {wanted}")
        return {(QUESTION_EXPIRED if expired else QUESTION_ANSWERED, name)}

    def _bury(self, agents: Sequence[str]) -> None:
        for known in self._known.values():
            if known.agent in agents and not known.how:
                known.how = VOID

    def _broken(self, what: str) -> None:
        self._world.process.broken(f"question: {what}")


def _decisions_left(changes: Sequence[StoredChange]) -> list[tuple[int, Any]]:
    """Return the decisions that a commit writes for agents, each with its time."""
    left = [
        change.parameters
        for change in changes
        if isinstance(change, RanStatement) and change.query == "add_remote_command"
    ]
    return [
        (parameters["now"], json.loads(parameters["body"])) for parameters in left if parameters["kind"] == "decide"
    ]


def _answer_in(changes: Sequence[StoredChange], known: ExpectedQuestion) -> object:
    """Return the answer that a commit writes as the asking call's result; None if declined, ``nothing`` if missing."""
    for change in changes:
        if isinstance(change, Written) and change.table == "messages":
            agent, _, kind, _, data, *_ = change.row
            said = json.loads(data or "{}")
            if (agent, kind, said.get("tool_use_id")) == (known.agent, Kind.TOOL_RESULT, known.call):
                return said.get("answer")
    return "nothing"
