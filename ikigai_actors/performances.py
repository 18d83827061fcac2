"""Process calls: what the agent performs itself for a call of its model, each as one unit of effect and result.

A crash leaves both or neither, so on resume a call without a result is simply performed. What the store refuses (the
agent to be killed is dead already) is the call's result, as an error.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ikigai_actors.calls import EXIT, FORK, KILL, Call, Progress, progress
from ikigai_actors.deaths import Cause
from ikigai_actors.drafts import advance, end_turn
from ikigai_actors.errors import BadInput
from ikigai_actors.forks import fork_by_call
from ikigai_actors.identity import check_name
from ikigai_actors.messages import Kind, storable
from ikigai_actors.providers.base import Reply
from ikigai_actors.signalling import KillByAgent
from ikigai_actors.state import ComeBack, Departure, State, Step
from ikigai_actors.units import Performance, Unit

TAKES: Mapping[str, Mapping[str, type]] = {
    FORK: {"prompt": str, "name": str},
    EXIT: {"result": str},
    KILL: {"agent": str, "reason": str, "cascade": bool},
}
"""The arguments of each process call."""

NEEDS: Mapping[str, tuple[str, ...]] = {KILL: ("agent",)}
"""Those that it cannot do without."""

_WORDS = {str: "text", bool: "true or false"}


def problem_of(call: Call) -> str | None:
    """Why a process call cannot be performed as it is, in words that help the model; None when it can."""
    takes = TAKES[call.name]
    for key, value in call.input.items():
        if key not in takes:
            return f"{call.name} takes {', '.join(takes)}; it does not know {key!r}."
        if value is not None and not isinstance(value, takes[key]):
            return f"{call.name} wants {key} to be {_WORDS[takes[key]]}, got {value!r}."
    for key in NEEDS.get(call.name, ()):
        if not call.input.get(key):
            return f"{call.name} needs {key}."
    try:
        if call.name == FORK and (name := call.input.get("name")):
            check_name(name)
    except BadInput as error:
        return str(error)
    return None


def perform(state: State, call: Call, fresh: str, now: int) -> Step:
    """Perform a process call that has no problem.

    Args:
        state: the agent.
        call: one of its model's.
        fresh: a uuid that nobody has, for a child.
        now: milliseconds since 1970.
    """
    match call.name:
        case "exit":
            return depart(state, storable(call.input.get("result") or ""), now, call)
        case "kill":
            why, spread = storable(call.input.get("reason") or ""), bool(call.input.get("cascade"))
            act = KillByAgent(storable(call.input["agent"]), state.uuid, now, why, spread)
            return _perform(state, call, act, _killed, now)
        case _:
            return fork_by_call(state, call, fresh, now)


def depart(state: State, result: str, now: int, call: Call | None = None) -> Step:
    """The normal end. A permanent agent closes its turn, and its supervisor brings it back."""
    if not state.standing.permanent:
        return Step(state, Departure(Cause.EXITED, result), call=call.id if call is not None else None)
    drafts = [] if call is None else [(Kind.TOOL_RESULT, "You exited, and were restarted.", _data(call))]
    ended = end_turn(state, now, Reply(result, stop_reason="exit"), *drafts, (Kind.INTERRUPTED, "", {"exit": result}))
    return replace(ended, effects=(*ended.effects, ComeBack()))


def _perform(state: State, call: Call, act: Unit, tell: Callable[[object], str], now: int) -> Step:
    performance = Performance(state.uuid, state.head + 1, _data(call), now, act, tell)
    after = advance(state, performance.messages, calls=progress(state.calls, (call.id,), Progress.DONE))
    return Step(after, performance, call=call.id)


def _data(call: Call) -> dict[str, str]:
    return {"tool_use_id": call.id, "name": call.name}


def _killed(aftermath: object) -> str:
    dead = len(getattr(aftermath, "dead", ()))
    return "Killed." if dead == 1 else f"Killed, and {dead - 1} agents with it."
