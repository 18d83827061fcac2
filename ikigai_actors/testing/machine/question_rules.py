"""The rules for questions to people: models ask; people answer at once, late, twice, and while the process crashes."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE, Stage
from ikigai_actors.testing.simulation.faults import CrashPoint

FORM = {"type": "boolean"}

_UNANSWERED: st.SearchStrategy[Mapping[str, Any] | None] = st.sampled_from(
    (None, {"remind": "2s"}, {"remind": "20s", "escalate": ["role:lead", "above"]}, {"escalate": ["above"]})
)
"""The steps of a question that nobody answers."""

ANSWERS = st.sampled_from((True, False, None))
"""The possible answers of a person; None declines."""

CRASHES = st.none() | st.tuples(st.integers(1, 4), st.booleans())
"""The commit at which the process crashes while a person answers, and whether that commit succeeds; None for no
crash.
"""


class QuestionRules(Stage):
    """The rules of both machines about questions to people."""

    @rule(who=AGENTS, within=st.sampled_from(("3s", "45s", "2m")), default=ANSWERS, steps=_UNANSWERED)
    def ask_person(self, who: int, within: str, default: bool | None, steps: Mapping[str, Any] | None) -> None:
        """Let a model ask a person, perhaps with a deadline, a default answer and steps."""
        if steps is not None:
            self.attempt(lambda: self.agent(who).configure(questions=steps, timeout=PATIENCE))
        agent = self.agent(who)  # the process may have ended since
        arguments = {"question": "Go on?", "form": FORM, "within": within} | (
            {} if default is None else {"default": default}
        )
        self.script(agent, Reply("", (ToolCall(ASK_PERSON, arguments),)))
        self.prompted(agent)
        self.attempt(self.world.settle)

    @precondition(lambda self: self.questions.to_people)
    @rule(back=st.integers(1, 4), answers=st.lists(ANSWERS, min_size=1, max_size=2), crash=CRASHES)
    def answer_question(self, back: int, answers: list[bool | None], crash: tuple[int, bool] | None) -> None:
        """Let people answer a question, which may be closed already; perhaps the process crashes meanwhile."""
        asked = self.questions.to_people
        name = asked[-min(back, len(asked))]
        if crash is not None:
            self.world.crash_at(CrashPoint(*crash))
        for answer in answers:
            by = self.questions.offered(answer)
            self.attempt(
                lambda: self.system.questions.answer(name, answer, by=by, timeout=PATIENCE),  # noqa: B023
                lambda first: self.questions.heard(name, by, first=first),  # noqa: B023
            )
        self.attempt(self.world.settle)

    @precondition(lambda self: self.questions.to_people)
    @rule(seconds=st.sampled_from((2, 10, 50)))
    def nobody_answers(self, seconds: int) -> None:
        """Let time pass while questions wait."""
        self.attempt(lambda: self.world.sleep(seconds))
