"""A rule, and what rules decide on a call of a tool. Pure.

A rule belongs to an agent. It applies to that agent and to all below it in the tree of supervisors, or to it alone. Any
rule that denies a call beats any that asks, and that beats any that allows: so an agent can be given narrower rules
than those above it, never wider ones. Where no rule fits, the tool's own policy decides.

The pattern of a rule says which calls of the tool it fits. Without one it fits every call. The tool says what its
pattern is compared with (`Subject`): for bash the command, for tools of files the path beneath the directory. A tool
that says nothing has no patterns: there a rule with one denies or asks all the same, and allows nothing.
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
"""Characters of a pattern."""

UNFENCED = "bash runs without the fence that it was to have, so no rule allows all of it."
"""Why a rule is refused."""

_TOOL = re.compile(r"[A-Za-z0-9_*-]{1,128}")


class Scope(StrEnum):
    """The agents that a rule applies to."""

    BELOW = "below"
    """The agent, and all below that in the tree of supervisors."""
    SELF = "self"
    """The agent alone."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of an agent."""

    agent: str
    """Whose it is, by uuid."""
    id: int
    """The number, which the agent never gives again."""
    decision: Policy
    tool: str
    """The name of the tool; ``*`` in it is any part of a name."""
    pattern: str = ""
    """Which calls it fits; empty for all."""
    scope: Scope = Scope.BELOW

    def __str__(self) -> str:
        words = (self.decision, self.tool, *([self.pattern] if self.pattern else []))
        return " ".join(words) + (" (this agent alone)" if self.scope is Scope.SELF else "")

    @property
    def is_whole(self) -> bool:
        """Whether it allows any command of bash."""
        return allows_whole(self.decision, self.tool, self.pattern)

    def names(self, tool: str) -> bool:
        """Whether the rule is about a tool."""
        return _name_fits(self.tool, tool)

    def fits(self, tool: str, asked: Asked | None) -> bool:
        """Whether the rule fits a call."""
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
"""The rules in force for an agent, in one order."""

RulesVersion = frozenset[tuple[str, int, int]]
"""Of each agent that has such rules how many, and the greatest number. Other rules have another version."""


class RuleSet(Rules):
    """The rules in force for an agent, with what is looked for in them at each call."""

    @cached_property
    def version(self) -> RulesVersion:
        """As `version_of`."""
        numbers: dict[str, list[int]] = {}
        for rule in self:
            numbers.setdefault(rule.agent, []).append(rule.id)
        return frozenset((agent, len(ids), max(ids)) for agent, ids in numbers.items())

    def about(self, tool: str) -> Rules:
        """The rules about a tool, in their order."""
        if (found := self._about.get(tool)) is None:
            found = self._about[tool] = tuple(rule for rule in self if rule.names(tool))
        return found

    @cached_property
    def _about(self) -> dict[str, Rules]:
        return {}


def version_of(rules: Rules) -> RulesVersion:
    """The version of the rules in force for an agent."""
    return (rules if isinstance(rules, RuleSet) else RuleSet(rules)).version


class NewRule(NamedTuple):
    """A rule that is to be set."""

    decision: Policy
    tool: str
    pattern: str = ""
    scope: Scope = Scope.BELOW


_STRICTEST_FIRST = (Policy.DENY, Policy.ASK, Policy.ALLOW)


def allows_whole(decision: Policy, tool: str, pattern: str) -> bool:
    """Whether a rule allows any command of bash, whatever the rest of its pattern says."""
    any_command = not pattern or (pattern_words(pattern) or ("",))[0] is None
    return decision is Policy.ALLOW and _name_fits(tool, SHELL) and any_command


def deciding(rules: Iterable[Rule], tool: str, asked: Asked | None, unfenced: bool = False) -> Rule | None:
    """The rule that decides on a call: the first of the strictest that fit; None where none does.

    Of those that allow it, one without a pattern comes first: a call that only a pattern allows may do less.

    Args:
        rules: those of the agent, and of all agents above it.
        tool: the name of the tool.
        asked: what the call asks for; None for a tool without patterns.
        unfenced: as `ToolTraits.unfenced`.
    """
    about = rules.about(tool) if isinstance(rules, RuleSet) else rules
    fit = [rule for rule in about if rule.fits(tool, asked) and not (unfenced and rule.is_whole)]
    return min(fit, key=lambda rule: (_STRICTEST_FIRST.index(rule.decision), bool(rule.pattern)), default=None)


def withholding(rules: Iterable[Rule], tool: str, asked: Asked, contents: bool) -> Rules:
    """The rules that keep files out of what a search shows, although the search itself may run.

    Those are rules about paths that deny, or ask about, the search of a file or its reading. A rule that was asked
    about for the search as a whole is none of them.

    Args:
        rules: those in force for the agent.
        tool: the name of the tool that searches.
        asked: what its call asks for.
        contents: whether it shows what is in files, and not their names alone: those are shown of a file about which
            only reading asks.
    """
    strict = [rule for rule in rules if rule.pattern and rule.decision is not Policy.ALLOW]
    return tuple(
        rule
        for rule in strict
        if (rule.names(tool) or (rule.names(READ) and (contents or rule.decision is Policy.DENY)))
        and not rule.fits(tool, asked)
    )


def exact_pattern(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """The pattern that fits this command of bash alone; None for other tools, and where no pattern can."""
    command = arguments.get("command")
    words = plain_words(command) if tool == SHELL and isinstance(command, str) else None
    pattern = None if words is None or of_shell(words) else shlex.join(words)
    return pattern if pattern is not None and len(pattern) <= LONGEST_PATTERN else None


def as_rules(rules: object) -> list[NewRule]:
    """The rules that a program gives, each as ``(decision, tool)``, perhaps with a pattern and a scope.

    Raises `BadInput`.
    """
    if isinstance(rules, str) or not isinstance(rules, Iterable):
        raise BadInput(f"Expected rules to be a list of rules; got {shown(rules)}.")
    made = []
    for one in rules:
        if not isinstance(one, tuple | list) or not 2 <= len(one) <= len(NewRule._fields):
            raise BadInput(
                f"Expected each of rules to be (decision, tool), or with a pattern and a scope; got {shown(one)}."
            )
        made.append(new_rule(*one))
    return made


def new_rule(decision: str, tool: str, pattern: str = "", scope: str = Scope.BELOW) -> NewRule:
    """A rule that is to be set. Raises `BadInput`: it is none, or would have no effect."""
    made = NewRule(*check_rule(decision, tool, pattern, scope))
    words = pattern_words(pattern) if made.tool == SHELL and made.decision is Policy.ALLOW else None
    if words is not None and of_shell(words):
        raise BadInput(
            f"No pattern allows {pattern!r}: it is to change the shell that later commands run in, and a command that "
            "a pattern allows runs apart from that. Leave the rule out: such a command asks."
        )
    return made


def check_rule(decision: str, tool: str, pattern: str = "", scope: str = Scope.BELOW) -> tuple[Policy, str, str, Scope]:
    """The parts of a rule, checked. Raises `BadInput`."""
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
    """Whether a name is as a pattern says, in which ``*`` is any text."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    *middle, last = rest
    at, end = len(first), len(name) - len(last)
    if at > end or not (name.startswith(first) and name.endswith(last)):
        return False
    for part in middle:
        if (found := name.find(part, at, end)) < 0:
            return False
        at = found + len(part)
    return True


def _path_fits(pattern: str, path: str) -> bool:
    """Whether a path is as a pattern says, in which ``*`` is any text within a name and ``**`` any names, or none."""
    wanted = pattern.split("/")

    def with_none(places: set[int]) -> set[int]:
        found = set(places)
        for place, name in enumerate(wanted):
            if place in found and name == "**":
                found.add(place + 1)
        return found

    places = with_none({0})
    for name in path.split("/"):
        stay = {at for at in places if at < len(wanted) and wanted[at] == "**"}
        go = {at + 1 for at in places if at < len(wanted) and wanted[at] != "**" and _name_fits(wanted[at], name)}
        places = with_none(stay | go)
    return len(wanted) in places
