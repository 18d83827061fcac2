"""Verbs about the settings of an agent, and its tools."""

import json
import textwrap
from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import MODEL, SETTING, TEXT, TOOL, VALUE
from ikigai_actors.verbs.place import THEME_WORDS, ShellPlace
from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.verb import ShellArgument, verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place


@verb("model", waits=True)
@click.argument("name", type=MODEL, required=False)
def model(place: "Place", agent: "AgentRef", name: str | None) -> object:
    """Show the agent's model, or set it as provider:model.

    Several models are separated by commas: the next one is asked when a service is not available. An empty NAME ("")
    removes the setting, and the shell's default answers. Children inherit the setting.
    """
    return _show_or_set(place, agent, "model", name)


@verb("system", waits=True)
@click.argument("text", type=TEXT, nargs=-1)
def system(place: "Place", agent: "AgentRef", text: tuple[str, ...]) -> object:
    """Show the agent's system prompt, or set it.

    TEXT is the rest of the line. An empty one ("") removes the setting. Children inherit the setting.
    """
    return _show_or_set(place, agent, "system", " ".join(text) if text else None)


@verb("set", waits=True, is_free=True)
@click.argument("name", type=SETTING)
@click.argument("value", type=VALUE, nargs=-1)
def set_one(place: "Place", agent: "AgentRef", name: str, value: tuple[str, ...]) -> object:
    """Show one of the agent's settings, or set it.

    VALUE is a number (max_tokens, max_steps, max_agents, temperature, top_p, stream_retries, service_retries,
    stuck_after, context_window, compact_at), on or off (notify, background), words separated by commas or a JSON list
    (tools, stop_sequences, fork_models), a JSON list or object (card, thinking, options, effects, skills, kinds,
    instructions, hooks, hook_commands, questions), or text (model, system, defer, compact, compact_model, urgency). An
    empty one ("") removes the setting. Children that are forked later inherit it. The verb settings shows all.
    """
    return _show_or_set(place, agent, name, " ".join(value) if value else None)


@verb("settings", needs=Right.LOOK)
@click.argument("what", cls=ShellArgument, metavar="[theme]", type=click.Choice(["theme"]), required=False)
@click.argument("colours", cls=ShellArgument, metavar="[COLOURS]", type=click.Choice(THEME_WORDS), required=False)
def settings(place: "Place", agent: "AgentRef", what: str | None = None, colours: str | None = None) -> object:
    """Show the settings that are in force, and where each comes from: an agent, or the start of ikigai.

    On the whole screen /settings theme COLOURS chooses the colours, and remembers that: dark, light, own (the
    terminal's), or auto.
    """
    if what is not None and isinstance(place, ShellPlace):
        if colours is None:
            raise click.UsageError(f"Say which colours: {', '.join(THEME_WORDS)}.")
        place.choose_theme(colours)
        return None
    from ikigai_actors.reach.views import scrollback_of
    from ikigai_actors.records.messages.settings import SETTINGS

    scrollback, defaults = scrollback_of(place.system, agent.uuid), place.system._default_settings
    in_force, sources = scrollback.settings(), scrollback.sources()
    for name in SETTINGS:
        if name in in_force:
            source = sources[name].agent_uuid
            whence = "its own" if source == agent.uuid else f"inherited from {words.named(place.system.handle(source))}"
            place.screen.line(f"{name}: {words.written(in_force[name])}   ({whence})")
        elif name in defaults:
            place.screen.line(f"{name}: {words.written(defaults[name])}   (as ikigai was started)")
    if not in_force and not defaults:
        place.screen.line("No setting is in force: the model's own defaults apply. /help set lists all.", dim=True)
    own = {name: {"value": value, "agent_uuid": sources[name].agent_uuid} for name, value in in_force.items()}
    return {name: {"value": value, "agent_uuid": None} for name, value in defaults.items()} | own


@verb(
    "tools",
    waits=True,
    timeout=30.0,
    needs=Right.LOOK,
    callers=Callers.PEOPLE | Callers.SCRIPTS,  # it is asked by a row, which one who may only look does not write
)
@click.argument("name", type=TOOL, required=False)
def tools(place: "Place", agent: "AgentRef", name: str | None) -> object:
    """List the tools that the agent's model is offered, or explain one.

    NAME shows its whole description and the schema of its arguments. The process that runs the agent answers.
    """
    from ikigai_actors.errors import BadInput

    offered = {str(tool["name"]): tool for tool in place.outcome(lambda: agent.system._tools_of(agent.uuid))}
    if name is None:
        for tool_name, tool in offered.items():
            shortened = textwrap.shorten(str(tool.get("description", "")), 80, placeholder=" …")
            place.screen.line(f"{tool_name:<12} {shortened}")
    elif name not in offered:
        raise BadInput(f"There is no tool {name!r}. {place.spelled('tools', agent)} lists them.")
    else:
        place.screen.block(str(offered[name].get("description", "")))
        place.screen.line(json.dumps(offered[name]["input_schema"], indent=2, ensure_ascii=False))
    return [*offered.values()]


def _show_or_set(place: "Place", agent: "AgentRef", name: str, text: str | None) -> object:
    """Show a setting, or set it; empty text removes it. Raises `BadInput`."""
    from ikigai_actors.records.messages.settings import parse_setting

    value = parse_setting(name, text or "")
    if text is None:
        value = agent.context().settings.get(name)
        place.screen.line(f"{name}: {words.written(value) if value is not None else 'not set'}")
    else:
        news = f"{name} set to {words.written(value)}" if value is not None else f"{name} removed"
        place.change(agent, "the change", lambda: agent.aio.configure(**{name: value}), news)
    return words.agent_row(agent) | {"setting": name, "value": value}
