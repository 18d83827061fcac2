"""The slash command about budgets."""

import click

from ikigai_actors.records.budgets.budget import parse_budget, parse_grant
from ikigai_actors.shell.text.budgets import budget_lines
from ikigai_actors.shell.text.naming import named
from ikigai_actors.shell.verbs.arguments import AGENT, TEXT
from ikigai_actors.shell.verbs.place import ShellPlace


@click.command("/budget")
@click.argument("agent", metavar="[ID]", type=AGENT, required=False)
@click.argument("more", metavar="[+AMOUNT|LIMIT]", type=TEXT, required=False)
@click.pass_obj
def budget(shell: ShellPlace, agent: str | None, more: str | None) -> None:
    """Show the nearest budget of an agent, or grant more of it; without ID of the current one.

    +5usd, +100ktokens, +2agents, +1h: those who wait for it go on. It may be an ancestor's: the answer says whose.
    usd=5 sets how much its own budget grants in all, at least what is spent and held, and makes it where there is none.
    """
    if agent is not None and more is None and (agent.startswith("+") or "=" in agent):
        agent, more = None, agent
    target = shell.current if agent is None else shell.system.agent(agent)
    found = target.budget
    if more is not None:
        found = target.set_budget(parse_budget(more)) if "=" in more else target.grant(**parse_grant(more))
    name = "" if found is None else named(shell.system.handle(found.owner))
    for line in budget_lines(found, name):
        shell.screen.line(line)


COMMANDS = (budget,)
