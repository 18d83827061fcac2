"""Rights that an exported file must not bring along. Pure.

An edited file can have correct sums, so nothing in a file may give an agent a right that nobody has given in this
database. Rules of the file that allow calls are dropped; only rules that ask or deny count. Four kinds of messages
could give rights:

    configure   ``max_agents``, ``max_steps``, ``stream_retries`` and similar values above the usual limits are removed,
                so that the usual limits apply. Removed, too: ``options``, which go to the service as they are, and
                ``skills``, ``kinds``, ``instructions`` and ``hook_commands``, whose texts nobody here has allowed,
                ``questions``, which may let calls run that nobody has approved, and ``card``, which lets agents of
                other systems in
    approval    the approval of a call in an open turn is dropped, so the call asks again
    tool_call   a call that was running in an open turn was started ``elsewhere``: it is never started again by itself,
                though its tool be idempotent
    hook        the verdict on a call in an open turn was given ``elsewhere``: the hooks that are here are asked

The agent above the imported ones may have restrictions that all of its children inherit. The imported agents inherit
nothing, so `restricted` gives these restrictions to them.
"""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.hook_commands import commands_in
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.settings import LIVING_LIMIT, MAX_STEPS, SERVICE_RETRIES, STREAM_RETRIES
from ikigai_actors.tools.policy import Policy
from ikigai_actors.tools.rules.rule import NewRule, check_rule

STARTED_ELSEWHERE = "elsewhere"
"""The key in the data of a ``tool_call`` that was started in another database."""


USUAL_LIMITS = {
    "max_agents": LIVING_LIMIT,
    "max_steps": MAX_STEPS,
    "service_retries": SERVICE_RETRIES,
    "stream_retries": STREAM_RETRIES,
}
"""The default limits of these settings."""


FOREIGN = (
    "options", "instructions", "kinds", "skills", "questions", "hook_commands", "card",
    "fork_models", "urgency", "background",
)  # fmt: skip
"""The settings that give rights, whatever their values are."""


def lifting(settings: Mapping[str, Any]) -> list[str]:
    """Return the names of settings that give a right: they lift a limit, or give access to a model or its service."""
    above = [name for name, usual in USUAL_LIMITS.items() if _is_more(settings.get(name), usual)]
    return [*above, *(name for name in FOREIGN if settings.get(name))]


def _is_more(value: object, usual: int) -> bool:
    return isinstance(value, int) and value > usual


def without_rights(kind: str, data: Mapping[str, Any], in_open_turn: bool) -> Mapping[str, Any]:
    """Return the data of a message of a file without the parts that would give the agent rights in this database."""
    match kind:
        case Kind.CONFIGURE:
            if lifted := lifting(data):
                return {**data, **dict.fromkeys(lifted)}
        case Kind.APPROVAL if in_open_turn:
            return {name: value for name, value in data.items() if name != "approved"}
        case Kind.TOOL_CALL | Kind.HOOK if in_open_turn:
            return {**data, STARTED_ELSEWHERE: True}
    return data


def restricted(settings: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings to add to an imported agent so that it may do no more than a child of another agent.

    Args:
        settings: the agent's own settings.
        above: the settings of the other agent, without ``effects``.
    """
    changes: dict[str, Any] = {}
    if (offered := above.get("tools")) is not None:
        wanted = settings.get("tools", offered)
        tools = [name for name in wanted if name in offered]
        if tools != settings.get("tools"):
            changes["tools"] = tools
    if (models := above.get("fork_models")) is not None:
        named_models = settings.get("fork_models") or []
        if wider := [model for model in named_models if model not in models]:
            changes["fork_models"] = [model for model in named_models if model not in wider]
    for name, usual in USUAL_LIMITS.items():
        if (most := above.get(name)) is not None and most < settings.get(name, usual):
            changes[name] = most
    named = settings.get("hooks") or []
    if further := [name for name in above.get("hooks") or () if name not in named]:
        changes["hooks"] = [*named, *further]
    commands = settings.get("hook_commands") or []
    asked = {entry["name"] for entry in commands if not entry.get("off")}
    if left := [entry for entry in commands_in(above) if entry["name"] not in asked]:
        refused = {entry["name"] for entry in left}
        changes["hook_commands"] = [*(entry for entry in commands if entry["name"] not in refused), *left]
    watched, own = above.get("stuck_after"), settings.get("stuck_after")
    if watched and not (own and own <= watched):
        changes["stuck_after"] = watched
    return changes


def counts(rule: NewRule) -> bool:
    """Return whether a rule of a file is imported. Rules that allow calls are not."""
    return rule.decision is not Policy.ALLOW


def earlier_rules(settings: Mapping[str, Any]) -> list[NewRule]:
    """Return the rules that correspond to the setting ``policies`` of an earlier version: a decision for each tool."""
    policies = settings.get("policies")
    rules = list[NewRule]()
    for tool, decision in policies.items() if isinstance(policies, Mapping) else ():
        try:
            rule = NewRule(*check_rule(decision, tool))
        except BadInput:
            continue  # of no tool, or not a decision: it never had an effect
        rules += [rule] if counts(rule) else []
    return rules
