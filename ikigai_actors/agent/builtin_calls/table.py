"""All built-in calls. To add one, write it in a file of this folder and put it into the ``CALLS`` of that file."""

from collections.abc import Mapping

from ikigai_actors.agent.builtin_calls import (
    asking,
    branches,
    budgets,
    documents,
    finding,
    fork,
    groups,
    lifecycle,
    mail,
    memory,
    skills,
    timers,
    wait,
)
from ikigai_actors.agent.builtin_calls.base import BuiltinCall
from ikigai_actors.agent.builtin_calls.programs import PROGRAM_CALLS
from ikigai_actors.agent.turn.state import CallUnit
from ikigai_actors.records.log.append import AppendCall, FencingToken

BUILTIN_CALLS: Mapping[str, BuiltinCall] = {
    call.name: call
    for file in (
        fork,
        branches,
        lifecycle,
        mail,
        wait,
        timers,
        groups,
        documents,
        budgets,
        memory,
        finding,
        skills,
        asking,
    )
    for call in file.CALLS
}
"""The built-in calls by name. No other tool may have such a name."""


def append_call(unit: CallUnit, fence: FencingToken, of_program: bool) -> AppendCall:
    """Return the unit of writes of a built-in call: its act, and the message that reports the act."""
    call = (PROGRAM_CALLS if of_program else BUILTIN_CALLS)[unit.call.name]
    act = call.act(unit.agent, unit.call.input, unit.created_at)
    return AppendCall(
        unit.agent, act, lambda answer: unit.message(call.to_model(answer), call.noted(answer)), fence, unit.rules
    )
