"""Rights, which an exported file may not bring along. Pure.

An editor of a file can make its sums right again, so nothing in it may let an agent do here what nobody here has
allowed. A rule of it that allows calls does not count, only those that ask or deny. Three kinds of message could:

    configure   a ``max_agents`` above the usual limit is removed, and the usual limit counts
    approval    the approval of a call in an open turn is dropped, so the call asks again
    tool_call   a call that was running in an open turn was started ``elsewhere``: it is never started again by itself,
                though its tool be idempotent

Where the agents come to live, an agent may have restrictions that all of its children inherit; `restricted` gives them
to those who come, who inherit nothing.
"""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.settings import LIVING_LIMIT
from ikigai_actors.tools.policy import Policy
from ikigai_actors.tools.rules.rule import NewRule, check_rule

STARTED_ELSEWHERE = "elsewhere"
"""In the data of a ``tool_call``: the call was started in another database."""


def without_rights(kind: str, data: Mapping[str, Any], in_open_turn: bool) -> Mapping[str, Any]:
    """The data of a message without the rights that it would give."""
    match kind:
        case Kind.CONFIGURE:
            most = data.get("max_agents")
            if isinstance(most, int) and most > LIVING_LIMIT:
                data = {**data, "max_agents": None}
        case Kind.APPROVAL if in_open_turn:
            return {name: value for name, value in data.items() if name != "approved"}
        case Kind.TOOL_CALL if in_open_turn:
            return {**data, STARTED_ELSEWHERE: True}
    return data


def restricted(settings: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that an agent must get so that it may do no more than a child of another agent.

    Args:
        settings: its own.
        above: those of the other agent, without ``effects``.
    """
    changes: dict[str, Any] = {}
    if (offered := above.get("tools")) is not None:
        wanted = settings.get("tools", offered)
        tools = [name for name in wanted if name in offered]
        if tools != settings.get("tools"):
            changes["tools"] = tools
    most = above.get("max_agents")
    if most is not None and most < settings.get("max_agents", LIVING_LIMIT):
        changes["max_agents"] = most
    return changes


def counts(rule: NewRule) -> bool:
    """Whether a rule of a file counts here."""
    return rule.decision is not Policy.ALLOW


def earlier_rules(settings: Mapping[str, Any]) -> list[NewRule]:
    """The rules that the setting ``policies`` of an earlier program meant: it named tools, each with a decision."""
    policies = settings.get("policies")
    found = list[NewRule]()
    for tool, decision in policies.items() if isinstance(policies, Mapping) else ():
        try:
            rule = NewRule(*check_rule(decision, tool))
        except BadInput:
            continue  # of no tool, or not a decision: it never had an effect
        found += [rule] if counts(rule) else []
    return found
