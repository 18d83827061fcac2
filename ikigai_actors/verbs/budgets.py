"""The verb ``budget``, which shows a budget or grants more of it."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import AGENT, TEXT
from ikigai_actors.verbs.place import ShellPlace
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.verbs.place import Place


@verb("budget", script="")
@click.argument("owner", metavar="[ID]", type=AGENT, required=False)
@click.argument("more", metavar="[+AMOUNT|LIMIT]", type=TEXT, required=False)
def budget(place: "Place", owner: str | None, more: str | None) -> object:
    """Show the nearest budget of an agent, or grant more of it.

    +5usd, +100ktokens, +2agents, +1h: agents that wait for the budget go on. The nearest budget may be an ancestor's;
    the answer names its owner. usd=5 sets the whole grant of the agent's own budget, at least the spent and held
    amounts, and makes a missing budget. Without ID the command is about the current agent, or in a script about agent
    0, whose budget is for all agents together.
    """
    from ikigai_actors.errors import NotAllowed
    from ikigai_actors.records.budgets.budget import parse_budget, parse_grant

    if owner is not None and more is None and (owner.startswith("+") or "=" in owner):
        owner, more = None, owner
    if owner is not None:
        agent = place.system.agent(owner)
    else:
        agent = place.current if isinstance(place, ShellPlace) else place.top
    status = agent.budget
    if status is not None and not place.reaches(status.owner):
        raise NotAllowed(f"The nearest budget of {words.named(agent)} belongs to an agent out of reach.")
    if more is not None:
        status = agent.set_budget(parse_budget(more)) if "=" in more else agent.grant(**parse_grant(more))
    name = "" if status is None else words.named(place.system.handle(status.owner))
    for line in words.budget_lines(status, name):
        place.screen.line(line)
    return status
