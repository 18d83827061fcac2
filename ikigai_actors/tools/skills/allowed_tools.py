"""The field ``allowed-tools`` of a skill as rules that allow calls: exactly what an entry says, or nothing. Pure.

    Bash(git add:*), Bash(git add *)    allow bash git add *
    Bash(npm run build)                 allow bash npm run build
    Read                                allow read
    Edit(src/**)                        allow edit src/**
    mcp__github__get_issue              allow github__get_issue

No rule is made of ``Bash`` alone, of a command that runs another one, of a server with all its tools, and of any entry
that no rule can express. The calls that these are about are decided as if the skill had not named them.
"""

import re
import shlex
from collections.abc import Iterable
from typing import NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.policy import READ, SHELL, Policy
from ikigai_actors.tools.rules.commands import plain_words, runs_another
from ikigai_actors.tools.rules.rule import NewRule, new_rule

_ENTRY = re.compile(r"([A-Za-z][\w-]*)(?:\(([^()\n]*)\))?")
_OF_SERVER = re.compile(r"mcp__([A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*)__([A-Za-z0-9_-]+)")
_FILE_TOOLS = {"Read": READ, "Write": "write", "Edit": "edit"}
_WHOLE = {**_FILE_TOOLS, "Glob": "glob", "Grep": "grep"}
_PATH = re.compile(r"(?:[\w@%+=,.-]+/)+(?:\*\*|[\w@%+=,.-]+)")


class AllowedTools(NamedTuple):
    """The tools that a skill names, for a person who decides whether the skill is used with them."""

    rules: tuple[NewRule, ...]
    """The rules that allow them."""
    left: tuple[str, ...]
    """The entries of which no rule is made."""

    def __str__(self) -> str:
        allows = "; ".join(" ".join(filter(None, (rule.tool, rule.pattern))) for rule in self.rules)
        left = f"not allowed by it, and decided at each call: {', '.join(self.left)}" if self.left else ""
        return "; ".join(filter(None, (f"allows {allows or 'nothing'}", left)))


def allowed_tools(entries: Iterable[str]) -> AllowedTools:
    """Return the rules for the entries of a field ``allowed-tools``, and the entries of which none is made."""
    rules = {entry: _rule_of(entry) for entry in entries}
    made = tuple(dict.fromkeys(rule for rule in rules.values() if rule is not None))
    return AllowedTools(made, tuple(entry for entry, rule in rules.items() if rule is None))


def _rule_of(entry: str) -> NewRule | None:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        return None
    name, pattern = match[1], match[2]
    try:
        if pattern is None:
            server = _OF_SERVER.fullmatch(name)
            tool = _WHOLE.get(name) if server is None else f"{server[1]}__{server[2]}"
            return None if tool is None else new_rule(Policy.ALLOW, tool)
        if name == "Bash":
            return _rule_of_command(pattern)
        path = _PATH.fullmatch(pattern) is not None and not {".", ".."} & {*pattern.split("/")}
        return new_rule(Policy.ALLOW, _FILE_TOOLS[name], pattern) if path and name in _FILE_TOOLS else None
    except BadInput:
        return None


def _rule_of_command(pattern: str) -> NewRule | None:
    """Return the rule for a command, or for all that begin with its words; None if the words are not plain."""
    command = pattern.removesuffix(":*").removesuffix(" *")
    further = len(command) < len(pattern)
    words = plain_words(command) if "*" not in command else None
    if words is None or runs_another(words):
        return None
    return new_rule(Policy.ALLOW, SHELL, shlex.join(words) + (" *" if further else ""))
