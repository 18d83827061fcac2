"""The slash commands about lives: signals, the normal end, names, adoption, supervision."""

import click

from ikigai_actors.shell.text.naming import named
from ikigai_actors.shell.verbs.arguments import AGENT, TEXT, in_either_case
from ikigai_actors.shell.verbs.place import Place
from ikigai_actors.system.ref import AgentRef
from supervisors.orphans import OrphanPolicy
from supervisors.signals import Signal, Status
from supervisors.strategies import Strategy


@click.command("/kill")
@click.argument("agent", metavar="[ID]", type=AGENT, required=False)
@click.option("--cascade", is_flag=True, help="All its descendants too, at once.")
@click.option("--reason", type=TEXT, default="", help="Why; it stands in the registry.")
@click.pass_obj
def kill(shell: Place, agent: str | None, cascade: bool, reason: str) -> None:
    """End an agent at once; without ID the current one.

    What becomes of its children its orphan policy says: see /orphans.
    """
    target = _agent(shell, agent)
    name = named(target)
    dead = shell.wait_for(lambda: target.kill(cascade=cascade, reason=reason))
    others = len(dead) - 1
    shell.screen.line(f"{name} is dead" + (f", and {others} below it" if others else ""))
    shell.leave_the_dead()


@click.command("/signal")
@click.argument(
    "name",
    metavar="|".join(Signal),
    type=click.Choice([one.value for one in Signal], case_sensitive=False),
    shell_complete=in_either_case,
)
@click.argument("agent", metavar="[ID]", type=AGENT, required=False)
@click.option("--cascade", is_flag=True, help="All its descendants too.")
@click.option("--grace", metavar="SECONDS", type=click.FloatRange(min=0), default=30.0, help="TERM: then it is killed.")
@click.pass_obj
def signal(shell: Place, name: str, agent: str | None, cascade: bool, grace: float) -> None:
    """Send a signal to an agent; without ID to the current one.

    INT ends its turn. STOP pauses it after its step, CONT lets it go on. TERM lets it finish its turn and die. KILL
    ends it at once.
    """
    target, sent = _agent(shell, agent), Signal(name.upper())
    effect = shell.wait_for(lambda: target.signal(sent, cascade=cascade, grace=grace))
    told = f"{sent} sent to {named(target)}" if effect else f"{sent} changes nothing for {named(target)}"
    # Only INT shows the state: after CONT a prompt that waited may begin at this moment, or a moment later.
    shell.screen.line(f"{told}: {target.state if sent is Signal.INT else target.record.status}")
    shell.leave_the_dead()


@click.command("/finish")
@click.argument("text", type=TEXT, nargs=-1)
@click.pass_obj
def finish(shell: Place, text: tuple[str, ...]) -> None:
    """End the current agent after its turn: the normal end. TEXT is its result, mailed to its supervisor."""
    agent = shell.current
    if (record := agent.record).status == Status.STOPPED and record.turn:
        shell.screen.error(
            f"{named(agent)} is stopped in the midst of its turn. Let it go on (/signal CONT), or /kill it."
        )
        return
    shell.wait_for(lambda: agent.exit(" ".join(text)))
    shell.screen.line(f"{named(agent)} has ended")
    shell.leave_the_dead()


@click.command("/rename")
@click.argument("name", type=TEXT)
@click.option("--agent", metavar="ID", type=AGENT, help="Another agent than the current one.")
@click.pass_obj
def rename(shell: Place, name: str, agent: str | None) -> None:
    """Give the current agent another name, unique among the living; "" takes its name away."""
    target = _agent(shell, agent)
    before = named(target)
    shell.wait_for(lambda: target.rename(name))
    shell.screen.line(f"{before} is {named(target)} now")


@click.command("/adopt")
@click.argument("agent", metavar="ID", type=AGENT)
@click.pass_obj
def adopt(shell: Place, agent: str) -> None:
    """Have the current agent look after another one, which goes on if it was stopped."""
    child, by = shell.system.agent(agent), shell.current
    shell.wait_for(lambda: by.adopt(child))
    shell.screen.line(f"{named(by)} looks after {named(child)} from now on")


@click.command("/orphans")
@click.argument("policy", type=click.Choice([one.value for one in OrphanPolicy]), required=False)
@click.pass_obj
def orphans(shell: Place, policy: str | None) -> None:
    """Show or set what becomes of the agent's children when it dies.

    reparent: its nearest living ancestor looks after them. cascade: they die too. stop: as reparent, and they pause.
    continue: they go on without a supervisor.
    """
    agent = shell.current
    if policy is not None:
        shell.wait_for(lambda: agent.supervise(on_orphan=policy))
    shell.screen.line(f"when {named(agent)} dies, its children: {agent.record.on_orphan}")


@click.command("/supervise")
@click.option(
    "--strategy", type=click.Choice([one.value for one in Strategy]), help="Whom the restart of a child takes along."
)
@click.option("--intensity", type=click.IntRange(min=0), help="Restarts within the period, before it gives up.")
@click.option("--period", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), help="See intensity.")
@click.pass_obj
def supervise(shell: Place, strategy: str | None, intensity: int | None, period: float | None) -> None:
    """Show or set how the agent restarts its children when they crash."""
    agent = shell.current
    if (strategy, intensity, period) != (None, None, None):
        shell.wait_for(lambda: agent.supervise(strategy=strategy, intensity=intensity, period=period))
    row = agent.record
    shell.screen.line(f"{named(agent)}: {row.strategy}, {row.intensity} restarts in {row.period / 1000:g} s")


COMMANDS = (kill, signal, finish, rename, adopt, orphans, supervise)


def _agent(shell: Place, text: str | None) -> AgentRef:
    return shell.current if text is None else shell.system.agent(text)
