"""The verb ``rules``: lists an agent's rules about calls of tools, adds one or removes one."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place


@verb("rules", slash="--of")
@click.argument("what", metavar="[add|remove]", type=click.Choice(["add", "remove"]), required=False)
@click.argument("decision", metavar="[allow|ask|deny|N]", type=TEXT, required=False)
@click.argument("tool", metavar="[TOOL]", type=TEXT, required=False)
@click.argument("pattern", metavar="[PATTERN]", type=TEXT, nargs=-1)
@click.option("--self", "alone", is_flag=True, help="For this agent alone, not for those below it.")
def rules(
    place: "Place",
    agent: "AgentRef",
    what: str | None,
    decision: str | None,
    tool: str | None,
    pattern: tuple[str, ...],
    alone: bool = False,
) -> object:
    """List the rules in force for an agent, add one, or remove one by its number.

    add deny bash "git push *" denies these commands to the agent and to all agents below it. add allow edit "src/**"
    allows paths.
    """
    if what is None:
        return _list_rules(place, agent)
    if what == "add":
        if decision is None or tool is None:
            raise click.UsageError("Say what to add: add allow|ask|deny TOOL [PATTERN].")
        scope, wanted = "self" if alone else "below", " ".join(pattern)
        rule = place.wait_for(lambda: agent.set_rule(decision, tool, wanted, scope=scope))
        place.screen.line(f"{words.named(agent)} has rule {rule.id}: {rule}")
        return words.agent_row(agent) | {"rule": rule.id}
    if decision is None or not decision.isdecimal() or tool is not None:
        raise click.UsageError("Say which of its rules to remove, by its number: remove N.")
    place.wait_for(lambda: agent.remove_rule(int(decision)))
    place.screen.line(f"{words.named(agent)} has rule {decision} no more")
    return words.agent_row(agent) | {"rule": int(decision)}


def _list_rules(place: "Place", agent: "AgentRef") -> object:
    rules = agent.rules()
    for rule in rules:
        of = "" if rule.agent == agent.uuid else f"   of {words.named(place.system.handle(rule.agent))}"
        place.screen.line(f"{rule.id}  {rule}{of}")
    if not rules:
        place.screen.line("No rules: the policy of each tool decides.")
    return [
        {
            "agent_uuid": rule.agent, "rule": rule.id, "decision": rule.decision, "tool": rule.tool,
            "pattern": rule.pattern, "scope": rule.scope, "skill": rule.skill or None,
        }
        for rule in rules
    ]  # fmt: skip
