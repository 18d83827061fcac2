"""The built-in call by which a model, or a program, asks a person: ask_person.

The call waits like a call that needs approval, and the answer of the person becomes its result. So this module never
carries it out. If nobody can be asked, the call is refused.
"""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.agent.builtin_calls.base import BuiltinCall, Given
from ikigai_actors.agent.turn.calls import Call
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.questions import check_question
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.errors import BadInput
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.tools.policy import ToolTraits

_TEXTS = {"type": "array", "items": {"type": "string"}}


class AskPersonCall(BuiltinCall):
    """The call ``ask_person``: ask a person a question, and wait for the answer."""

    name = ASK_PERSON
    description = (
        "Ask a person what only a person can say, and wait for the answer, which is the result. It may take long: your "
        "other calls of this reply are carried out meanwhile. Without form the answer is a text."
    )

    def __init__(self) -> None:
        super().__init__()
        properties: dict[str, Any] = {
            "question": {"type": "string", "description": "What you ask. The person sees this alone."},
            "form": {
                "type": "object",
                "description": 'What the answer is, as a flat JSON Schema: {"type": "boolean"}, or an object whose '
                "properties are string, number, integer or boolean, with enum for a choice.",
            },
            "to": {
                **_TEXTS,
                "description": "People: role:WORD or principal:ID. All who may approve if left out.",
            },
            "within": {"type": "string", "description": "How long to wait, as 30m or 4h; then default is the answer."},
            "default": {"description": "The answer if nobody answers in time; declined if left out."},
        }
        schema = {"type": "object", "properties": properties, "additionalProperties": False, "required": ["question"]}
        self.described = {**self.described, "input_schema": schema}

    def check(self, arguments: Given) -> None:
        check_question(arguments)

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        raise BadInput("Nobody is asked here: all that asks is allowed. Decide yourself, and say so.")


CALLS = (AskPersonCall(),)
