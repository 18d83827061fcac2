"""Verbs about calls that wait for approval.

A shell numbers the calls, so a person can type ``/approve 2``. A script names the agent, and the call by the full name
that ``approvals`` lists. So the decision cannot hit another call that waits later.
"""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.place import ShellPlace
from ikigai_actors.verbs.principal import check_may_decide, words_of_roles
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.verb import ScriptOption, ShellArgument, verb

if TYPE_CHECKING:
    from ikigai_actors.agent.turn.calls import PendingCall
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place

_CALL = "Which of its calls: the text that approvals lists, as 7/call_0/1a2b3c4d."


@verb("approvals", script="", needs=Right.LOOK)
def list_approvals(place: "Place") -> object:
    """List the calls that wait for approval.

    They wait until somebody decides, also when the shell is left and started again. Other agents go on meanwhile.
    """
    calls = [call for call in place.system.approvals.pending() if place.reaches(call.agent)]
    if isinstance(place, ShellPlace):
        numbered = place.questions.open()
        calls = [*numbered.values()]
        for number, call in numbered.items():
            place.screen.line(f"{number}  {_described(place, call)}")
    else:
        for call in calls:
            place.screen.line(f"{call.full_name}  {_described(place, call)}")
    if not calls:
        place.screen.line("No call waits for approval.")
    elif isinstance(place, ShellPlace):
        place.screen.line("/approve N lets one run, /deny N does not.")
    return [words.as_row(call) | {"call": call.full_name} for call in calls]


@verb("approve", needs=Right.APPROVE)
@click.argument("number", cls=ShellArgument, metavar="[N]", type=click.IntRange(min=1), required=False)
@click.option("--call", cls=ScriptOption, metavar="CALL", type=TEXT, help=_CALL)
@click.option("--always", "always", flag_value="tool", help="This agent need not ask for this tool again.")
@click.option("--exact", "always", flag_value="exact", help="This agent need not ask for this command of bash again.")
def approve(
    place: "Place", agent: "AgentRef", always: str | None, number: int | None = None, call: str | None = None
) -> object:
    """Let a call run that waits for approval.

    In a shell N is its number in /approvals; without it, the first call of the current agent.
    """
    if isinstance(place, ShellPlace):
        place.decide(number, True, always=always or "")
        return None
    waits = _call_of(place, agent, call)
    check_may_decide(place.system, waits, place.principal.id, words_of_roles(place.principal))
    cut_off = _is_cut_off(place, waits)
    in_time = place.system.approvals.approve(waits, always=always or False, by=place.principal.id)
    return _decided(place, waits, in_time, "runs", cut_off)


@verb("deny", needs=Right.APPROVE)
@click.argument("reason", metavar="[N] [REASON]", type=TEXT, nargs=-1)
@click.option("--call", cls=ScriptOption, metavar="CALL", type=TEXT, help=_CALL)
def deny(place: "Place", agent: "AgentRef", reason: tuple[str, ...], call: str | None = None) -> object:
    """Refuse a call that waits for approval. The model reads the REASON.

    In a shell N is its number in /approvals; without it, the first call of the current agent.
    """
    if isinstance(place, ShellPlace):
        number = int(reason[0]) if reason and reason[0].isdecimal() else None
        place.decide(number, False, reason=" ".join(reason if number is None else reason[1:]))
        return None
    waits = _call_of(place, agent, call)
    check_may_decide(place.system, waits, place.principal.id, words_of_roles(place.principal))
    cut_off = _is_cut_off(place, waits)
    in_time = place.system.approvals.deny(waits, " ".join(reason), by=place.principal.id)
    return _decided(place, waits, in_time, "does not run", cut_off)


def _call_of(place: "Place", agent: "AgentRef", full_name: str | None) -> "PendingCall":
    """Return the call of an agent with a full name. Raises `BadInput`, which names the calls that wait."""
    from ikigai_actors.errors import BadInput

    calls = [call for call in place.system.approvals.pending() if call.agent == agent.uuid]
    for call in calls:
        if call.full_name == full_name:
            return call
    if not calls:
        raise BadInput(f"No call of {words.named(agent)} waits for approval.")
    waiting = "; ".join(f"{call.full_name} ({words.described_call(call)})" for call in calls)
    if full_name is None:
        raise BadInput(f"Name the call that you have looked at, with --call. Of {words.named(agent)} waits: {waiting}.")
    raise BadInput(f"No call {full_name!r} of {words.named(agent)} waits for approval. Those that do: {waiting}.")


def _is_cut_off(place: "Place", call: "PendingCall") -> bool:
    """Return whether the turn of a call was cut off, so that a decision continues it."""
    from ikigai_actors.agent.turn.state import is_interrupted

    return is_interrupted(place.system.handle(call.agent).state)


def _decided(place: "Place", call: "PendingCall", in_time: bool, what: str, cut_off: bool) -> object:
    from ikigai_actors.verbs.text.wording import AND_GOES_ON

    agent, on = place.system.handle(call.agent), AND_GOES_ON if cut_off else ""
    place.screen.line(
        f"{words.named(agent)} {what} {call.tool}{on}" if in_time else f"{call.full_name}: that call waits no more"
    )
    return words.agent_row(agent) | {"call": call.full_name, "decided": in_time}


def _described(place: "Place", call: "PendingCall") -> str:
    return f"{words.named(place.system.handle(call.agent))}: {words.described_call(call)}"
