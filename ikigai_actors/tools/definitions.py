"""Definitions of tools: what models and people see of a tool, known by its digest.

A question about a call holds for one definition, and for one build (`ikigai_actors.tools.builds`). Where the tool has
another one when the call is to begin, as after an upgrade of an MCP server, the question is asked again, and shows the
difference. The body of a definition is kept in the table ``definitions``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from typing import Any, NamedTuple

from ikigai_actors.tools.policy import ToolTraits


class Definition(NamedTuple):
    """The definition of a tool."""

    digest: str
    """The SHA-256 of the body, in hexadecimal digits."""
    name: str
    body: str
    """JSON in ASCII: what `Tool.describe` gives, and the traits that decide on its calls."""


@dataclass(frozen=True, slots=True)
class ToolDifference:
    """A tool that living hosts do not have alike."""

    tool: str
    """The name of the tool."""
    traits: tuple[str, ...]
    """The parts of its definition that differ: ``description``, ``input_schema``, ``policy`` and so on."""
    without: tuple[str, ...]
    """The hosts that do not have it, by name."""


def definition_of(described: Mapping[str, Any], traits: ToolTraits) -> Definition:
    """The definition of a tool: its name, description and schema, and the traits that decide on its calls.

    Args:
        described: what `Tool.describe` gives.
        traits: as the tool has them, not as this process decides on them.
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
    """The digest of a definition, from its body."""
    return sha256(body.encode()).hexdigest()


def difference_of(former: str | None, body: str | None) -> str:
    """The difference between two definitions of a tool, from their bodies; None for one that is not kept here.

    Each line begins with ``-`` where it was so before, with ``+`` where it is so now, and else with a blank.
    """
    if former is None or body is None:
        return f"The {'former' if former is None else 'present'} definition is not kept in this database."
    before, after = (_lines(text) for text in (former, body))
    return "\n".join(line for line in [*unified_diff(before, after, lineterm="", n=1)][2:] if line[:2] != "@@")


def change_of(definitions: tuple[str, str], bodies: Mapping[str, str], builds: tuple[str, str]) -> str:
    """The difference between what a question held for, and what it holds for now, in the lines of `difference_of`.

    Args:
        definitions: the digests of both definitions, the former first.
        bodies: the bodies of definitions, by digest, as far as they are kept.
        builds: the names of both builds, in the same order; empty where one is not known.
    """
    former, now = definitions
    changed = [difference_of(bodies.get(former), bodies.get(now))] if former != now else []
    if builds[0] != builds[1]:
        changed += [f"{sign}build: {build}" for sign, build in zip("-+", builds, strict=True) if build]
    return "\n".join(changed)


def _lines(body: str) -> list[str]:
    """A definition as lines that people compare: a paragraph of its description is a line."""
    whole = json.loads(body)
    description = str(whole.pop("description", "")).split("\n")
    return [*description, *json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False).split("\n")]
