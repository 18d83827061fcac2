"""Verbs about calls that wait for approval.

A shell numbers them, so a person can type ``/approve 2``. A script names the agent, and one of its calls by its id.
"""

from typing import TYPE_CHECKING

import click

from ikigai_actors.shell import text as words
from ikigai_actors.shell.verbs.arguments import TEXT
from ikigai_actors.shell.verbs.place import ShellPlace
from ikigai_actors.shell.verbs.verb import ScriptOption, ShellArgument, verb

if TYPE_CHECKING:
    from ikigai_actors.agent.turn.calls import PendingCall
    from ikigai_actors.shell.verbs.place import Place
    from ikigai_actors.system.handles.ref import AgentRef

_CALL = "Which of its calls: the id that approvals lists. Without it, the only one that waits."


@verb("approvals", script="")
def list_approvals(place: "Place") -> object:
    """List the calls that wait for approval.

    They wait until somebody decides, also when the shell is left and started again. Other agents go on meanwhile.
    """
    calls = place.system.approvals.pending()
    if isinstance(place, ShellPlace):
        numbered = place.questions.open()
        calls = [*numbered.values()]
        for number, call in numbered.items():
            place.screen.line(f"{number}  {_described(place, call)}")
    else:
        for call in calls:
            place.screen.line(f"{call.id}  {_described(place, call)}")
    if not calls:
        place.screen.line("No call waits for approval.")
    elif isinstance(place, ShellPlace):
        place.screen.line("/approve N lets one run, /deny N does not.")
    return [words.as_row(call) for call in calls]


@verb("approve")
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
    from ikigai_actors.system.approvals import person

    waits = _one_of(place, agent, call)
    return _decided(place, waits, place.system.approvals.approve(waits, always=always or False, by=person()), "runs")


@verb("deny")
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
    from ikigai_actors.system.approvals import person

    waits = _one_of(place, agent, call)
    return _decided(place, waits, place.system.approvals.deny(waits, " ".join(reason), by=person()), "does not run")


def _one_of(place: "Place", agent: "AgentRef", id_: str | None) -> "PendingCall":
    """The call of an agent that is meant. Raises `BadInput`."""
    from ikigai_actors.errors import BadInput

    calls = [call for call in place.system.approvals.pending() if call.agent == agent.uuid]
    meant = [call for call in calls if id_ in (None, call.id)]
    if len(meant) == 1:
        return meant[0]
    if not calls:
        raise BadInput(f"No call of {words.named(agent)} waits for approval.")
    waiting = ", ".join(call.id for call in calls)
    if not meant:
        raise BadInput(f"No call {id_!r} of {words.named(agent)} waits for approval. Those that do: {waiting}.")
    raise BadInput(f"{len(calls)} calls of {words.named(agent)} wait: name one with --call. They are {waiting}.")


def _decided(place: "Place", call: "PendingCall", in_time: bool, what: str) -> object:
    agent = place.system.handle(call.agent)
    place.screen.line(f"{words.named(agent)} {what} {call.tool}" if in_time else f"{call.id}: that call waits no more")
    return words.agent_row(agent) | {"call": call.id, "decided": in_time}


def _described(place: "Place", call: "PendingCall") -> str:
    return f"{words.named(place.system.handle(call.agent))}: {words.described_call(call)}"
