"""Several steps of a program's turn in one unit: a result, the reply that follows from it, the beginnings of its calls.

A program is its own model, and its steps cost little. So three units are written as one if nothing can come between
them: no steering message waits, no hook and no person is asked, and the agent is not stopped. Pure.

A crash before the unit is committed leaves the call without a result, as a crash in the middle of the call does. The
function has seen the result, but nothing that follows from the result has left the process. The calls of the reply
start once the unit is committed, as always.
"""

from collections.abc import Callable
from typing import NamedTuple

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import Phase, RequestModel, RunTool, State, Step
from ikigai_actors.frozen import replace
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Kind


class Ahead(NamedTuple):
    """The progress of a program's function with the result of a step, made before that result was committed."""

    at: int
    """The time when the function got the result, in milliseconds since 1970. The result is written with this time."""
    reply: Reply | None
    """The next reply of the function; None if the function has not come so far."""


NextDecision = Callable[[State, on.TurnEvent | None], Step]
"""Decides the step for an event; without an event, goes on with the calls of the last reply."""


def with_beginnings(step: Step, decide: NextDecision) -> Step:
    """Complete a step that writes a reply: begin the reply's calls in the same unit, if all of them can begin."""
    unit = step.unit
    if not isinstance(unit, LogUnit) or step.effects or step.state.phase is not Phase.RUNNING_TOOLS:
        return step
    begun = decide(step.state, None)
    if not _only_begins(begun):
        return step
    assert isinstance(begun.unit, LogUnit)
    together = replace(unit, messages=(*unit.messages, *begun.unit.messages), rules=begun.unit.rules)
    return replace(step, state=begun.state, unit=together, effects=begun.effects)


def with_reply(step: Step, reply: Reply, model: str, decide: NextDecision) -> Step:
    """Complete a step that writes the last result of a reply: the same unit writes the next reply and begins its calls.

    Args:
        step: the step that writes the result.
        reply: the next reply.
        model: the name of the model that gives it.
        decide: decides the steps that follow.
    """
    unit = step.unit
    if not isinstance(unit, LogUnit) or not unit.asks or step.effects:
        return step
    asked = decide(step.state, None)
    if asked.effects != (RequestModel(asked.state.request),):
        return step
    assert asked.unit is None or (isinstance(asked.unit, LogUnit) and not asked.unit.messages)
    replied = decide(asked.state, on.ReplyReceived(asked.state.request, reply, model))
    if not isinstance(replied.unit, LogUnit) or replied.effects or replied.state.phase is not Phase.RUNNING_TOOLS:
        return step
    together = replace(unit, messages=(*unit.messages, *replied.unit.messages), asks=False)
    return with_beginnings(replace(step, state=replied.state, unit=together), decide)


def _only_begins(step: Step) -> bool:
    unit = step.unit
    if not isinstance(unit, LogUnit) or unit != LogUnit(unit.agent, unit.messages, rules=unit.rules):
        return False
    begins = all(message.kind == Kind.TOOL_CALL for message in unit.messages)
    return bool(unit.messages) and begins and all(isinstance(effect, RunTool) for effect in step.effects)
