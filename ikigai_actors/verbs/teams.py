"""The verb ``up``, about teams as files."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.verbs.place import Place

_WORDS = {"there": "as in the file", "differs": "differs from the file", "dead": "dead, and not made again"}


@verb(
    "up",
    script="",
    waits=True,
    everywhere=True,
    callers=Callers.PEOPLE | Callers.SCRIPTS,  # it reads a file of this machine
)
@click.argument("file", metavar="FILE", type=TEXT)
@click.option("--plan", is_flag=True, help="Only show what would be made, and what differs.")
def up(place: "Place", file: str, plan: bool) -> object:
    """Make the agents of a team file that were never made, and show where the others differ from it.

    Each agent is made once, with its kind, budget and first prompt; a second run makes what is missing. No agent is
    changed or ended.
    """
    lines = place.wait_for(lambda: place.system.up(file, plan=plan))
    for line in lines:
        state = ("would be made" if plan else "made") if line.state == "new" else _WORDS[line.state]
        place.screen.line(f"{one_line(line.name)}   {state}", bold=line.state != "there")
        for each in line.differs:
            place.screen.line(f"    {one_line(each)}", dim=True)
    return [words.as_row(line) for line in lines]
