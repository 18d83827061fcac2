"""The slash commands about hosts: the processes that run the agents."""

import click

from ikigai_actors.shell.text.hosts import host_lines
from ikigai_actors.shell.text.naming import named
from ikigai_actors.shell.verbs.arguments import AGENT, HOST
from ikigai_actors.shell.verbs.place import ShellPlace
from ikigai_actors.store.hosts.rows import recent_hosts, vacant


@click.command("/hosts")
@click.pass_obj
def hosts(shell: ShellPlace) -> None:
    """Show which processes run the agents, or did within the last hour.

    Each has its share of the agents. See also: /move, and ikigai host.
    """
    found, free = shell.system.store.read(lambda tx: (recent_hosts(tx), vacant(tx)))
    for line in host_lines(found, free):
        shell.screen.line(line)


@click.command("/move")
@click.argument("agent", metavar="ID", type=AGENT)
@click.argument("host", metavar="HOST", type=HOST)
@click.pass_obj
def move(shell: ShellPlace, agent: str, host: str) -> None:
    """Have another host run an agent, and those below it that live with it.

    HOST is its name; /hosts lists them. What the agents are doing is cut off, and goes on there.
    """
    target = shell.system.agent(agent)
    shell.wait_for(lambda: target.move(host))
    shell.screen.line(f"{named(target)} is run by {host} from now on")


COMMANDS = (hosts, move)
