"""Children of a kind: the messages with which they begin, and the limits of their rights. Pure.

A kind is a pinned setting of the parent (`records.messages.kinds`). A child of a kind is an ordinary fork. Unless the
kind says ``history: inherit``, its log begins with a clear, so that the model does not see the parent's history:

    fork | clear, with the name and digest of the kind | configure | user, with the texts of the kind's skills

The child has the settings of its parent, and the system prompt, model, tools and steps of its kind over them. A kind
never widens what the parent may: the child has no tool that its parent lacks, no more steps a turn, and the hooks,
rules and budgets of its parent hold for it. The beginning is in the child's log. So forks of the child inherit it, an
undo removes a prompt but never the kind, and the hashes cover it.
"""

from collections.abc import Collection, Mapping
from typing import Any

from ikigai_actors.agent.turn.calls import FORK, GIVE_RESULT
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.base import FIND_TOOLS
from ikigai_actors.records.budgets.budget import Budget, parse_budget, tighter
from ikigai_actors.records.messages.kinds import INHERIT, PinnedKind, kinds_in
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.settings import MAX_STEPS
from ikigai_actors.records.messages.skills_beside import SKILLS
from ikigai_actors.text import in_catalogue
from ikigai_actors.tools.policy import ToolTraits
from supervisors.children import RestartType

KIND = "kind"
"""The key, in the data of the message with which the child of a kind begins, of the kind's name and digest."""
_OF_PROGRAMS = "prompt"
"""A call that programs alone have."""
_GUIDE = "fork with kind makes an agent of one of these kinds. Most kinds do not know what you know: say all in prompt."


def kinds_catalogue(settings: Mapping[str, Any]) -> str:
    """Return the part of a system prompt that lists the kinds of which a model can fork children.

    Empty without kinds.
    """
    if not has_tool(settings, FORK):
        return ""
    entries = (f"{kind['name']}: {kind['description']}" for kind in kinds_in(settings))
    lines = [f"- {in_catalogue(line, 'kinds')}" for line in entries]
    return "\n".join(["<kinds>", _GUIDE, *lines, "</kinds>"]) if lines else ""


def has_tool(settings: Mapping[str, Any], name: str) -> bool:
    """Return whether an agent's settings allow it a tool."""
    tools = settings.get("tools")
    return not isinstance(tools, list) or name in tools


def messages_of_kind(
    kind: PinnedKind,
    settings: Mapping[str, Any],
    tools: Mapping[str, ToolTraits],
    prompt: str | None,
    data: Mapping[str, Any],
    over: Mapping[str, Any],
    further: Collection[str] = (),
) -> list[tuple[Kind, str, Any]]:
    """Return the first messages of a child with this kind, after its ``fork`` message.

    Args:
        kind: the kind.
        settings: the settings of the parent.
        tools: the tools of the parent.
        prompt: the first prompt of the child; None lets it wait for one.
        data: the data of the prompt.
        over: settings that were passed in addition to the kind.
        further: tools that the child gets in addition to those of its kind, if its parent has them.

    Raises `BadInput` if the kind adds texts to a prompt and there is no prompt, or if the kind excludes tools that are
    not known here.
    """
    if prompt is None and (kind.get("history") == INHERIT or "skills" in kind or "output" in kind):
        raise BadInput(f"Expected a prompt for a child of kind {kind['name']}, which brings a text with it; got none.")
    own = {name: kind[name] for name in ("system", "model") if kind.get(name)}
    if _OF_PROGRAMS in tools and not {"model"} & (own.keys() | over.keys()):
        raise BadInput(
            f"Kind {kind['name']} has no model, and its child would run the program of its parent: name one."
        )
    most = settings.get("max_steps", MAX_STEPS)
    if "max_steps" in kind:
        own["max_steps"] = min(kind["max_steps"], most)
    if (wanted := _tools_of(kind, settings, tools, further)) is not None:
        own["tools"] = wanted
    about = {KIND: {"name": kind["name"], "sha256": kind["sha256"]}}
    data = _with_kind(kind, data)
    if prompt is not None and kind.get("history") == INHERIT:
        system = own.pop("system", "")
        text = f"{system}\n\n{prompt}" if system else prompt
        changed = {**own, **over}
        begin: list[tuple[Kind, str, Any]] = [(Kind.CONFIGURE, "", changed)] if changed else []
        return [*begin, (Kind.USER, text, {**data, **about})]
    fresh: list[tuple[Kind, str, Any]] = [
        (Kind.CLEAR, "", about),
        (Kind.CONFIGURE, "", {**settings, **own, **over}),
    ]
    return fresh if prompt is None else [*fresh, (Kind.USER, prompt, data)]


def budget_of_kind(kind: PinnedKind, budget: Budget | None) -> Budget | None:
    """Return the budget of a child: its kind's, combined with the requested one."""
    return tighter(parse_budget(kind["budget"]), budget) if "budget" in kind else budget


def restart_of_kind(kind: PinnedKind, restart: str) -> str:
    """Return the restart type of a child: the requested one; if that is the default, the kind's."""
    return str(kind.get("restart", restart)) if restart == RestartType.TRANSIENT else restart


def _with_kind(kind: PinnedKind, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of the first prompt, with the texts of the kind's skills and the kind's type of value."""
    typed = {"output": kind["output"]} if "output" in kind and "output" not in data else {}
    asked = list(data.get(SKILLS, ()))
    names = [entry["name"] for entry in asked]
    texts = [skill for skill in kind.get("skills", ()) if skill["name"] not in names] + asked
    return {**data, **typed, **({SKILLS: texts} if texts else {})}


def _tools_of(
    kind: PinnedKind, settings: Mapping[str, Any], tools: Mapping[str, ToolTraits], further: Collection[str]
) -> list[str] | None:
    """Return the setting ``tools`` of the child; None if the child has the tools of its parent."""
    wanted, without = kind.get("tools"), set(kind.get("without", ()))
    if wanted is None and not without:
        return None
    known: Collection[str] | None = tools.keys() - {GIVE_RESULT, FIND_TOOLS}
    if _OF_PROGRAMS in tools:  # its tools are those of a function, and no child has them
        known = settings.get("tools")
    if known is None and wanted is None:
        raise BadInput(f"Kind {kind['name']} forbids tools, and a program does not know them: have it name its tools.")
    named = known if wanted is None else {*wanted, *further}
    return sorted(name for name in named or () if name not in without and (known is None or name in known))
