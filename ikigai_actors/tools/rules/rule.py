"""Rules about calls of tools, and how several rules decide on a call. Pure.

A rule belongs to an agent. It applies to that agent and to all below it in the tree of supervisors, or to it alone. A
rule that denies a call takes precedence over one that asks, and that over one that allows. So the rules of an agent can
be narrower than those of agents above it, never wider. Where no rule fits, the tool's own policy decides.

The pattern of a rule limits it to certain calls of the tool. Without a pattern a rule fits every call. The tool defines
the text to which patterns apply (`Subject`): for bash the command, for tools of files the path within the directory.
Other tools have no patterns: a rule with a pattern then still denies or asks, but it allows nothing.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from ikigai_actors.arguments import check_choice, check_type, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.text import check_text
from ikigai_actors.tools.policy import READ, SHELL, Asked, Compared, Policy
from ikigai_actors.tools.rules.commands import fits, may_run, of_shell, pattern_words, plain_words

LONGEST_PATTERN = 2_000
"""The most characters of a pattern."""

UNFENCED = "bash runs without the fence that it was to have, so no rule allows all of it."
"""The reason why a rule is refused that allows all of bash without its fence."""

_TOOL = re.compile(r"[A-Za-z0-9_*-]{1,128}")


class Scope(StrEnum):
    """The agents to which a rule applies."""

    BELOW = "below"
    """The agent, and all agents below it in the tree of supervisors."""
    SELF = "self"
    """Only the agent."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of an agent: it allows, denies, or asks a person about certain calls of a tool."""

    agent: str
    """The uuid of the agent that has the rule."""
    id: int
    """The number of the rule. The agent never uses a number twice."""
    decision: Policy
    tool: str
    """The name of the tool. ``*`` in it matches any text."""
    pattern: str = ""
    """The pattern for the calls that the rule fits; empty for all calls."""
    scope: Scope = Scope.BELOW
    skill: str = ""
    """The digest of the skill with which somebody has allowed it. It holds for agents that have this skill in use.
    Empty for other rules.
    """

    def __str__(self) -> str:
        words = (self.decision, self.tool, *([self.pattern] if self.pattern else []))
        skill = f" (with skill {self.skill[:12]})" if self.skill else ""
        return " ".join(words) + (" (this agent alone)" if self.scope is Scope.SELF else "") + skill

    @property
    def is_whole(self) -> bool:
        """Return whether the rule allows every command of bash."""
        return allows_whole(self.decision, self.tool, self.pattern)

    def names(self, tool: str) -> bool:
        """Return whether the rule is about the tool with this name."""
        return _name_fits(self.tool, tool)

    def fits(self, tool: str, asked: Asked | None) -> bool:
        """Return whether the rule applies to a call of a tool.

        ``asked``: the text of the call to which patterns apply; None for a tool without patterns.
        """
        if not self.names(tool):
            return False
        if not self.pattern:
            return True
        if asked is None:
            return self.decision is not Policy.ALLOW
        if asked.compared is Compared.PATH:
            return _path_fits(self.pattern, asked.text)
        if (pattern := pattern_words(self.pattern)) is None:  # of a rule for several tools
            return self.decision is not Policy.ALLOW
        words = plain_words(asked.text)
        if words is not None and fits(pattern, words):
            return self.decision is not Policy.ALLOW or not of_shell(words)
        return self.decision is not Policy.ALLOW and may_run(pattern, asked.text)


Rules = tuple[Rule, ...]
"""The rules in force for an agent, in a fixed order."""

RulesVersion = frozenset[tuple[str, int, int]]
"""The version of a set of rules: for each agent with rules, its uuid, their number, and the greatest number of a rule.
Different sets have different versions.
"""


class RuleSet(Rules):
    """The rules in force for an agent, indexed by tool."""

    @cached_property
    def has_skills(self) -> bool:
        """Return whether some of the rules are of skills."""
        return any(rule.skill for rule in self)

    @cached_property
    def version(self) -> RulesVersion:
        """The digest of the rules, as `version_of` returns it."""
        numbers: dict[str, list[int]] = {}
        for rule in self:
            numbers.setdefault(rule.agent, []).append(rule.id)
        return frozenset((agent, len(ids), max(ids)) for agent, ids in numbers.items())

    def about(self, tool: str) -> Rules:
        """Return the rules that are about a tool, in the order of the set."""
        if (rules := self._about.get(tool)) is None:
            rules = self._about[tool] = tuple(rule for rule in self if rule.names(tool))
        return rules

    @cached_property
    def _about(self) -> dict[str, Rules]:
        return {}


def version_of(rules: Rules) -> RulesVersion:
    """Return the version of these rules, which changes whenever they do."""
    return (rules if isinstance(rules, RuleSet) else RuleSet(rules)).version


def rules_with(rules: Rules, settings: Mapping[str, Any]) -> Rules:
    """Return the rules without those of skills that an agent with these settings does not have in use."""
    if not rules or not (rules if isinstance(rules, RuleSet) else RuleSet(rules)).has_skills:
        return rules
    entries = settings.get("skills")
    mappings = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    used = {entry.get("sha256") for entry in mappings if not entry.get("off")}
    return RuleSet(rule for rule in rules if not rule.skill or rule.skill in used)


class NewRule(NamedTuple):
    """A rule that a program or a person wants to set."""

    decision: Policy
    tool: str
    pattern: str = ""
    scope: Scope = Scope.BELOW


_STRICTEST_FIRST = (Policy.DENY, Policy.ASK, Policy.ALLOW)


def allows_whole(decision: Policy, tool: str, pattern: str) -> bool:
    """Return whether a rule allows every command of bash, for example because its pattern begins with ``*``."""
    any_command = not pattern or (pattern_words(pattern) or ("",))[0] is None
    return decision is Policy.ALLOW and _name_fits(tool, SHELL) and any_command


def deciding(rules: Iterable[Rule], tool: str, asked: Asked | None, unfenced: bool = False) -> Rule | None:
    """Return the rule that decides on a call: the first of the strictest rules that fit; None if none fits.

    Among rules that allow the call, one without a pattern comes first, because a call that only a pattern allows has
    fewer rights.

    Args:
        rules: the rules of the agent, and of all agents above it.
        tool: the name of the tool.
        asked: the text of the call to which patterns apply; None for a tool without patterns.
        unfenced: as `ToolTraits.unfenced`.
    """
    about = rules.about(tool) if isinstance(rules, RuleSet) else rules
    fit = [rule for rule in about if rule.fits(tool, asked) and not (unfenced and rule.is_whole)]
    return min(fit, key=lambda rule: (_STRICTEST_FIRST.index(rule.decision), bool(rule.pattern)), default=None)


def withholding(rules: Iterable[Rule], tool: str, asked: Asked, contents: bool) -> Rules:
    """Return the rules that hide files from the result of a search that may run.

    These are rules with a path pattern that deny, or ask about, searching or reading a file. A rule about which
    somebody was asked for this search is left out.

    Args:
        rules: the rules in force for the agent.
        tool: the name of the tool that searches.
        asked: the text of the call to which patterns apply.
        contents: whether the search shows the contents of files, rather than only their names. Names are shown even if
            reading the file needs approval.
    """
    strict = [rule for rule in rules if rule.pattern and rule.decision is not Policy.ALLOW]
    return tuple(
        rule
        for rule in strict
        if (rule.names(tool) or (rule.names(READ) and (contents or rule.decision is Policy.DENY)))
        and not rule.fits(tool, asked)
    )


def exact_pattern(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the pattern that matches exactly the command of a call of bash; None for other tools.

    None also if no pattern can match the command.
    """
    command = arguments.get("command")
    words = plain_words(command) if tool == SHELL and isinstance(command, str) else None
    pattern = None if words is None or of_shell(words) else shlex.join(words)
    return pattern if pattern is not None and len(pattern) <= LONGEST_PATTERN else None


def as_rules(rules: object) -> list[NewRule]:
    """Check the rules that a program passes: tuples ``(decision, tool)``, perhaps with a pattern and a scope.

    Raises `BadInput`.
    """
    if isinstance(rules, str) or not isinstance(rules, Iterable):
        raise BadInput(f"Expected rules to be a list of rules; got {shown(rules)}.")
    made = []
    for entry in rules:
        if not isinstance(entry, tuple | list) or not 2 <= len(entry) <= len(NewRule._fields):
            raise BadInput(
                f"Expected each of rules to be (decision, tool), or with a pattern and a scope; got {shown(entry)}."
            )
        made.append(new_rule(*entry))
    return made


def new_rule(decision: str, tool: str, pattern: str = "", scope: str = Scope.BELOW) -> NewRule:
    """Return a rule that can be set. Raises `BadInput` if the rule has faults, or would have no effect."""
    made = NewRule(*check_rule(decision, tool, pattern, scope))
    words = pattern_words(pattern) if made.tool == SHELL and made.decision is Policy.ALLOW else None
    if words is not None and of_shell(words):
        raise BadInput(
            f"No pattern allows {pattern!r}: it is to change the shell that later commands run in, and a command that "
            "a pattern allows runs apart from that. Leave the rule out: such a command asks."
        )
    return made


def check_rule(decision: str, tool: str, pattern: str = "", scope: str = Scope.BELOW) -> tuple[Policy, str, str, Scope]:
    """Check the parts of a rule, and return them. Raises `BadInput`."""
    decided, holds = check_choice(decision, "decision", [*Policy]), check_choice(scope, "scope", [*Scope])
    check_type(tool, str, "tool", "the name of a tool")
    check_text(pattern, "pattern")
    if _TOOL.fullmatch(tool) is None:
        raise BadInput(f"Expected tool to be 1 to 128 of A-Z a-z 0-9 _ - and *, got {tool!r}.")
    if len(pattern) > LONGEST_PATTERN or not pattern.isprintable() or (pattern and not pattern.strip()):
        raise BadInput(
            f"Expected pattern to be up to {LONGEST_PATTERN:,} printable characters, or empty for all calls."
        )
    if tool == SHELL and pattern and pattern_words(pattern) is None:
        raise BadInput(
            f"Expected a pattern for bash to be words of one command, in which * is a word, got {pattern!r}. Quote "
            "what bash would expand: git commit -m '*'."
        )
    return Policy(decided), tool, pattern, Scope(holds)


def _name_fits(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern, in which ``*`` is any text."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    *middle, last = rest
    at, end = len(first), len(name) - len(last)
    if at > end or not (name.startswith(first) and name.endswith(last)):
        return False
    for part in middle:
        if (place := name.find(part, at, end)) < 0:
            return False
        at = place + len(part)
    return True


def _path_fits(pattern: str, path: str) -> bool:
    """Return whether a path matches a pattern: ``*`` is any text within a name, ``**`` any number of names."""
    wanted = pattern.split("/")

    def with_none(places: set[int]) -> set[int]:
        with_none = set(places)
        for place, name in enumerate(wanted):
            if place in with_none and name == "**":
                with_none.add(place + 1)
        return with_none

    places = with_none({0})
    for name in path.split("/"):
        stay = {at for at in places if at < len(wanted) and wanted[at] == "**"}
        go = {at + 1 for at in places if at < len(wanted) and wanted[at] != "**" and _name_fits(wanted[at], name)}
        places = with_none(stay | go)
    return len(wanted) in places
