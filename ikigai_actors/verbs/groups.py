"""Verbs about groups and monitors."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import AGENT, TEXT
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place


@verb("group", script="--as", everywhere=True)
@click.argument("what", type=click.Choice(["join", "leave"]), required=False)
@click.argument("name", type=TEXT, required=False)
def group(place: "Place", agent: "AgentRef | None", what: str | None, name: str | None) -> object:
    """Show all groups, or let an agent join or leave one.

    A mail to group:reviewers goes to all members at that moment.
    """
    if what is None:
        groups = sorted(place.system.groups().items())
        for each, members in groups:
            place.screen.line(f"{each}: {', '.join(sorted(member.record.short for member in members))}")
        if not groups:
            place.screen.line("No groups.")
        return {each: [member.uuid for member in members] for each, members in groups}
    if name is None:
        raise click.UsageError(f"Say which group to {what}.")
    if agent is None:
        raise click.UsageError(f"Say which agent is to {what} it: --as ID.")
    if what == "join":
        done = place.wait_for(lambda: agent.join(name))
        place.screen.line(f"{agent.record.short} {'is now' if done else 'was already'} in {name}")
    else:
        done = place.wait_for(lambda: agent.leave(name))
        place.screen.line(f"{agent.record.short} {'has left' if done else 'was not in'} {name}")
    return words.agent_row(agent) | {"group": name, "changed": done}


@verb("monitor")
@click.argument("watched", metavar="ID", type=AGENT)
@click.option("--off", is_flag=True, help="Not any more.")
def monitor(place: "Place", agent: "AgentRef", watched: str, off: bool) -> object:
    """Send an agent a mail when another one dies.

    A supervisor gets such a mail for its own children anyway.
    """
    other, name = place.system.agent(watched), agent.record.short
    if off:
        done = place.wait_for(lambda: agent.demonitor(other))
        place.screen.line(f"{name} {'hears no more of' if done else 'did not monitor'} {words.named(other)}")
    else:
        place.wait_for(lambda: agent.monitor(other))
        place.screen.line(f"{name} will hear of the death of {words.named(other)}")
    return words.agent_row(agent) | {"monitors": other.uuid, "on": not off}
