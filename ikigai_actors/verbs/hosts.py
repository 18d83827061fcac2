"""Verbs about hosts: the processes that run the agents."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import HOST
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place


@verb("hosts", script="", everywhere=True, needs=Right.LOOK)
def hosts(place: "Place") -> object:
    """Show the processes that run the agents, or did so within the last hour.

    Each process has a share of the agents, and runs a build of the app's code. See also: move, and ikigai host.
    """
    from ikigai_actors.records.hosts.builds import host_differences
    from ikigai_actors.store.hosts.rows import recent_hosts, vacant

    hosts, free, differences = place.system._store.read(lambda tx: (recent_hosts(tx), vacant(tx), host_differences(tx)))
    for line in words.host_lines(hosts, free, differences):
        place.screen.line(line)
    return [words.host_row(host) for host in hosts]


@verb("move", slash="ID", waits=True, timeout=60.0)
@click.argument("host", metavar="HOST", type=HOST)
def move(place: "Place", agent: "AgentRef", host: str) -> object:
    """Move an agent to another host, with the agents below it that live on the same host.

    HOST is a name; the command hosts lists the hosts. Turns in progress are cut off, and go on at the new host.
    """
    place.outcome(lambda: agent.aio.move(host))
    place.screen.line(f"{words.named(agent)} is run by {host} from now on")
    return words.agent_row(agent) | {"host": host}
