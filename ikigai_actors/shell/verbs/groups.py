"""The slash commands about groups and monitors."""

import click

from ikigai_actors.shell.text.naming import named
from ikigai_actors.shell.verbs.arguments import AGENT, TEXT
from ikigai_actors.shell.verbs.place import ShellPlace


@click.command("/group")
@click.argument("what", type=click.Choice(["join", "leave"]), required=False)
@click.argument("name", type=TEXT, required=False)
@click.pass_obj
def group(shell: ShellPlace, what: str | None, name: str | None) -> None:
    """Show all groups, or have the current agent join or leave one: /group join reviewers.

    /send group:reviewers TEXT sends a mail to all who are members then.
    """
    agent = shell.current
    if what is None:
        found = shell.system.groups()
        for each, members in sorted(found.items()):
            shell.screen.line(f"{each}: {', '.join(sorted(member.record.short for member in members))}")
        if not found:
            shell.screen.line("No groups.")
        return
    if name is None:
        raise click.UsageError(f"Say which group to {what}.")
    if what == "join":
        done = shell.wait_for(lambda: agent.join(name))
        shell.screen.line(f"{agent.record.short} {'is now' if done else 'was already'} in {name}")
    else:
        done = shell.wait_for(lambda: agent.leave(name))
        shell.screen.line(f"{agent.record.short} {'has left' if done else 'was not in'} {name}")


@click.command("/monitor")
@click.argument("agent", metavar="ID", type=AGENT)
@click.option("--off", is_flag=True, help="Not any more.")
@click.pass_obj
def monitor(shell: ShellPlace, agent: str, off: bool) -> None:
    """Have the current agent hear of the death of another one, by mail.

    Of those that it supervises it hears anyway.
    """
    watcher, watched = shell.current, shell.system.agent(agent)
    name = watcher.record.short
    if off:
        done = shell.wait_for(lambda: watcher.demonitor(watched))
        shell.screen.line(f"{name} {'hears no more of' if done else 'did not monitor'} {named(watched)}")
    else:
        shell.wait_for(lambda: watcher.monitor(watched))
        shell.screen.line(f"{name} will hear of the death of {named(watched)}")


COMMANDS = (group, monitor)
