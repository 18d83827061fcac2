"""Definitions of tools: the parts of a tool that models and people see, identified by a digest.

A person's approval of a call holds for one definition and one build (`ikigai_actors.tools.builds`). If the tool's
definition has changed before the call begins, for example after an upgrade of an MCP server, the question is asked
again, and shows the difference. The bodies of definitions are in the table ``definitions``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from typing import Any, NamedTuple

from ikigai_actors.tools.policy import ToolTraits


class Definition(NamedTuple):
    """The definition of a tool, with its digest."""

    digest: str
    """The SHA-256 of the body, in hexadecimal digits."""
    name: str
    body: str
    """The definition as ASCII JSON: the result of `Tool.describe`, and the traits that decide on the tool's calls."""


@dataclass(frozen=True, slots=True)
class ToolDifference:
    """A tool of which hosts that share the agents have different definitions."""

    tool: str
    """The name of the tool."""
    traits: tuple[str, ...]
    """The parts of its definition that differ: ``description``, ``input_schema``, ``policy`` and so on."""
    without: tuple[str, ...]
    """The names of the hosts that do not have the tool."""


def definition_of(described: Mapping[str, Any], traits: ToolTraits) -> Definition:
    """Return the definition of a tool: its name, description and schema, and the traits that decide on its calls.

    Args:
        described: the result of `Tool.describe`.
        traits: the traits of the tool itself, before this process has adapted them.
    """
    whole = {
        **described,
        "idempotent": traits.idempotent,
        "read_only": traits.read_only,
        "alone": traits.alone,
        "policy": traits.policy.value,
    }
    body = json.dumps(whole, sort_keys=True, separators=(",", ":"), default=str)
    return Definition(digest_of_definition(body), str(described.get("name", "")), body)


def digest_of_definition(body: str) -> str:
    """Return the digest of a definition from its body."""
    return sha256(body.encode()).hexdigest()


def difference_of(former: str | None, body: str | None) -> str:
    """Return the difference between two definitions of a tool, from their bodies; None for a body that is not stored.

    Lines of the old definition begin with ``-``, lines of the new one with ``+``, and common lines with a blank.
    """
    if former is None or body is None:
        return f"The {'former' if former is None else 'present'} definition is not kept in this database."
    before, after = (_lines(text) for text in (former, body))
    return "\n".join(line for line in [*unified_diff(before, after, lineterm="", n=1)][2:] if line[:2] != "@@")


def change_of(definitions: tuple[str, str], bodies: Mapping[str, str], builds: tuple[str, str]) -> str:
    """Return how the definition and the build have changed since a question was first asked, as lines of text.

    Args:
        definitions: the digests of the old and the new definition.
        bodies: the stored bodies of definitions, by digest.
        builds: the names of the old and the new build; empty if unknown.
    """
    former, now = definitions
    changed = [difference_of(bodies.get(former), bodies.get(now))] if former != now else []
    if builds[0] != builds[1]:
        changed += [f"{sign}build: {build}" for sign, build in zip("-+", builds, strict=True) if build]
    return "\n".join(changed)


def _lines(body: str) -> list[str]:
    """Return a definition as lines to compare: first those of its description, then the rest as JSON."""
    whole = json.loads(body)
    description = str(whole.pop("description", "")).split("\n")
    return [*description, *json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False).split("\n")]
