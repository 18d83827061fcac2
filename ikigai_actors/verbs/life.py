"""Verbs about the lives of agents: signals, the normal end, names, adoption, supervision."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import AGENT, TEXT, in_either_case
from ikigai_actors.verbs.place import ShellPlace
from ikigai_actors.verbs.signals import TERM_SECONDS, send_signal
from ikigai_actors.verbs.verb import verb
from supervisors.orphans import OrphanPolicy
from supervisors.signals import Signal, Status
from supervisors.strategies import Strategy

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place


@verb("kill", slash="[ID]")
@click.option("--cascade", is_flag=True, help="All its descendants too, at once.")
@click.option("--reason", type=TEXT, default="", help="The reason, for the registry.")
def kill(place: "Place", agent: "AgentRef", cascade: bool, reason: str) -> object:
    """End an agent at once.

    The orphan policy of the agent decides about its children: see orphans.
    """
    return _killed(place, agent, cascade, reason)


def _killed(place: "Place", agent: "AgentRef", cascade: bool, reason: str) -> object:
    name = words.named(agent)
    dead = place.wait_for(lambda: send_signal(agent, Signal.KILL, cascade=cascade, reason=reason)).dead
    others = len(dead) - 1
    place.screen.line(f"{name} is dead" + (f", and {others} below it" if others else ""))
    place.leave_the_dead()
    return words.agent_row(agent) | {"dead": [*dead]}


@verb("signal", slash="… [ID]", script="… AGENT")
@click.argument(
    "name",
    metavar="|".join(Signal),
    type=click.Choice([signal.value for signal in Signal], case_sensitive=False),
    shell_complete=in_either_case,
)
@click.option("--cascade", is_flag=True, help="All its descendants too.")
@click.option("--reason", type=TEXT, default="", help="The reason, for the registry if an agent dies of it.")
@click.option(
    "--grace", metavar="SECONDS", type=click.FloatRange(min=0), default=TERM_SECONDS, help="TERM: then it is killed."
)
def signal(place: "Place", agent: "AgentRef", name: str, cascade: bool, reason: str, grace: float) -> object:
    """Send a signal to an agent.

    INT ends its turn. STOP pauses it after its step, CONT lets it go on. TERM lets it finish its turn and die. KILL
    ends it at once.
    """
    sent = Signal(name.upper())
    if sent is Signal.KILL and not isinstance(place, ShellPlace):
        return _killed(place, agent, cascade, reason)
    effect, _ = place.wait_for(lambda: send_signal(agent, sent, cascade=cascade, reason=reason, grace=grace))
    # Only INT shows the state: after CONT a prompt that waited may begin at this moment, or a moment later.
    state = agent.state if sent is Signal.INT else agent.record.status
    done = "sent to" if effect else "changes nothing for"
    says_state = not effect or isinstance(place, ShellPlace)
    place.screen.line(f"{sent} {done} {words.named(agent)}" + (f": {state}" if says_state else ""))
    place.leave_the_dead()
    return words.agent_row(agent) | {"signal": sent.value, "effect": effect, "state": str(state)}


@verb("finish", waits=True)
@click.argument("text", type=TEXT, nargs=-1)
def finish(place: "Place", agent: "AgentRef", text: tuple[str, ...]) -> object:
    """End an agent after its turn: the normal end. TEXT is its result, mailed to its supervisor."""
    from ikigai_actors.errors import BadInput

    if (record := agent.record).status == Status.STOPPED and record.turn:
        raise BadInput(
            f"{words.named(agent)} is stopped in the middle of its turn. Let it go on "
            f"({place.spelled('signal CONT', agent)}), or {place.spelled('kill', agent)} it."
        )
    place.outcome(lambda: agent.aio.exit(" ".join(text)))
    place.screen.line(f"{words.named(agent)} has ended")
    place.leave_the_dead()
    return words.agent_row(agent)


@verb("rename", slash="--agent")
@click.argument("name", type=TEXT)
def rename(place: "Place", agent: "AgentRef", name: str) -> object:
    """Give an agent another name, unique among the living.

    An empty NAME ("") takes its name away.
    """
    before = words.named(agent)
    place.wait_for(lambda: agent.rename(name))
    place.screen.line(f"{before} is {words.named(agent)} now")
    return words.agent_row(agent)


@verb("adopt")
@click.argument("child", metavar="ID", type=AGENT)
def adopt(place: "Place", agent: "AgentRef", child: str) -> object:
    """Let an agent supervise another one, which goes on if it was stopped."""
    adopted = place.system.agent(child)
    place.wait_for(lambda: agent.adopt(adopted))
    place.screen.line(f"{words.named(agent)} looks after {words.named(adopted)} from now on")
    return words.agent_row(adopted) | {"supervisor_uuid": agent.uuid}


@verb("orphans")
@click.argument("policy", type=click.Choice([policy.value for policy in OrphanPolicy]), required=False)
def orphans(place: "Place", agent: "AgentRef", policy: str | None) -> object:
    """Show or set what becomes of an agent's children when it dies.

    reparent: the nearest living ancestor supervises the children. cascade: the children die, too. stop: as reparent,
    and the children pause. continue: the children go on without a supervisor.
    """
    if policy is not None:
        place.wait_for(lambda: agent.supervise(on_orphan=policy))
    row = agent.record
    place.screen.line(f"when {words.named(agent)} dies, its children: {row.on_orphan}")
    return words.agent_row(agent) | {"on_orphan": row.on_orphan}


@verb("supervise")
@click.option(
    "--strategy",
    type=click.Choice([strategy.value for strategy in Strategy]),
    help="Which siblings a restart takes along.",
)
@click.option("--intensity", type=click.IntRange(min=0), help="Restarts within the period, before it gives up.")
@click.option("--period", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), help="See intensity.")
def supervise(
    place: "Place", agent: "AgentRef", strategy: str | None, intensity: int | None, period: float | None
) -> object:
    """Show or set how an agent restarts its children when they crash."""
    if (strategy, intensity, period) != (None, None, None):
        place.wait_for(lambda: agent.supervise(strategy=strategy, intensity=intensity, period=period))
    row = agent.record
    place.screen.line(f"{words.named(agent)}: {row.strategy}, {row.intensity} restarts in {row.period / 1000:g} s")
    return words.agent_row(agent) | {
        "strategy": row.strategy, "intensity": row.intensity, "period": row.period / 1000
    }  # fmt: skip
