"""The verb ``hooks``, which lists, allows and refuses the hooks of an agent."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place


@verb(
    "hooks",
    slash="--of",
    waits=True,
    callers=Callers.PEOPLE | Callers.SCRIPTS,  # it reads the disk of this machine
)
@click.argument("what", metavar="[use|off]", type=click.Choice(["use", "off"]), required=False)
@click.argument("names", metavar="[NAME]...", type=TEXT, nargs=-1)
def hooks(place: "Place", agent: "AgentRef", what: str | None, names: tuple[str, ...]) -> object:
    """List the hooks of an agent in their order, and the commands of its workspace that could be hooks, or decide.

    use NAME turns on a command of .claude/settings.json, which runs in the fence of the workspace. off NAME refuses the
    command; the question about it comes again only after the command changes. Children that are forked later inherit
    the decisions. If the setting hooks names a hook that is missing here, all that this hook would decide on is denied.
    """
    if what is None:
        return _list_hooks(place, agent)
    if not names:
        raise click.UsageError(f"Say which: {what} NAME.")
    off = what == "off"
    done = f"{', '.join(names)}: {'refused' if off else 'in use'}"
    place.change(agent, "the hooks", lambda: agent.aio.use_hooks(only=list(names), off=off), done)
    return words.agent_row(agent) | {"hooks": list(names), "off": off}


def _list_hooks(place: "Place", agent: "AgentRef") -> object:
    from ikigai_actors.reach.views import hooks_of
    from ikigai_actors.system.hook_files import find_hooks, hooks_listed

    settings = agent.context().settings
    known = hooks_of(place.system)
    rows: list[Mapping[str, Any]] = []
    for hook in known:
        tools = ", ".join(hook.tools) or "all"
        failure = "denies" if hook.on_error == "deny" else "denies nothing"
        runs = f"   runs {one_line(hook.command)}" if hook.command else ""
        place.screen.line(
            f"{one_line(hook.name)}   {hook.event}   {tools}   {hook.timeout:g} s, a failure {failure}{runs}"
        )
        rows.append({"name": hook.name, "state": "of the program", "event": hook.event, "command": hook.command})
    there = find_hooks(place.system._workspace or Path.cwd())
    for row in hooks_listed(settings, there):
        place.screen.line(f"{row.name}   {row.state}   {one_line(row.source)}", bold=row.state == "new")
        place.screen.line(f"    {row.event} {one_line(row.matcher)}: {one_line(row.command)}")
        rows.append(words.as_row(row))
    for trouble in there.troubles:
        place.screen.line(one_line(trouble), dim=True)
    names = {hook.name for hook in known}
    missing = sorted(name for name in settings.get("hooks") or () if name.rpartition(":")[2] not in names)
    for name in missing:
        place.screen.line(f"{one_line(name)}   missing here: what it decides on is denied", bold=True)
        rows.append({"name": name, "state": "missing"})
    if not rows:
        place.screen.line("There are no hooks. ActorSystem.open(hooks=[...]) has some, .claude/settings.json others.")
    return rows
