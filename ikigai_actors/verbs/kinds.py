"""The verb ``kinds``, which lists, allows and refuses the kinds of agents that an agent can fork."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place


@verb(
    "kinds",
    slash="--of",
    waits=True,
    callers=Callers.PEOPLE | Callers.SCRIPTS,  # it reads the disk of this machine
)
@click.argument("what", metavar="[use|off|look]", type=click.Choice(["use", "off", "look"]), required=False)
@click.argument("names", metavar="[NAME]...", type=TEXT, nargs=-1)
def kinds(place: "Place", agent: "AgentRef", what: str | None, names: tuple[str, ...]) -> object:
    """List the kinds of agents that an agent can fork and those on this disk, or decide which of them it may.

    use NAME pins a kind by its present file, also a kind that has changed. off NAME refuses a kind; the question about
    it comes again only after its file changes. look NAME shows the file. Children that are forked later inherit the
    decisions.
    """
    if what is None:
        return _list_kinds(place, agent)
    if not names:
        raise click.UsageError(f"Say which: {what} NAME.")
    if what == "look":
        return _look(place, names)
    off = what == "off"
    text = f"{', '.join(names)}: {'refused' if off else 'in use'}"
    place.change(agent, "the kinds", lambda: agent.aio.use_kinds(only=list(names), off=off), text)
    return words.agent_row(agent) | {"kinds": list(names), "off": off}


def _list_kinds(place: "Place", agent: "AgentRef") -> object:
    from ikigai_actors.system.kind_files import find_kinds, usual_kind_places
    from ikigai_actors.system.kinds import kinds_listed

    kinds = find_kinds(usual_kind_places(_directory(place)))
    rows = kinds_listed(agent.context().settings, kinds)
    for row in rows:
        fresh = row.state in ("new", "changed")
        place.screen.line(f"{one_line(row.name)}   {row.state}   {one_line(row.source)}", bold=fresh)
        place.screen.line(f"    {one_line(row.description)}", dim=True)
    for trouble in kinds.troubles:
        place.screen.line(one_line(trouble), dim=True)
    if not rows:
        place.screen.line("There are no kinds. ikigai looks in .claude/agents and .agents/agents, here and at home.")
    return [words.as_row(row) for row in rows]


def _look(place: "Place", names: tuple[str, ...]) -> object:
    from ikigai_actors.errors import BadInput
    from ikigai_actors.system.kind_files import find_kinds, usual_kind_places

    by_name = {kind.name: kind for kind in find_kinds(usual_kind_places(_directory(place))).kinds}
    if missing := [name for name in names if name not in by_name]:
        raise BadInput(f"There is no kind {', '.join(missing)} on this disk. Kinds: {', '.join(by_name) or 'none'}.")
    texts = {}
    for name in names:
        texts[name] = Path(by_name[name].source).read_text(encoding="utf-8", errors="replace")
        place.screen.line(by_name[name].source, bold=True)
        place.screen.block(texts[name])
    return texts


def _directory(place: "Place") -> Path:
    return place.system._workspace or Path.cwd()
