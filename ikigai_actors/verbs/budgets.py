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

    +5usd, +100ktokens, +2agents, +1h: those who wait for it go on. It may be an ancestor's: the answer says whose.
    usd=5 sets how much its own budget grants in all, at least what is spent and held, and makes it where there is none.
    Without ID it is the budget of the current agent, or for a script that of agent 0, for all together.
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
