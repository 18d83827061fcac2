"""Keyed calls in an exported file: after the import their keys still return the first result. Pure.

    a scope outside of the file     is not in the file: other agents, doors, documents of nobody
    an answer that names a timer    is not in the file, as the timer; the program sets that again where it runs
a scope with another uuid here  does not count: the agent is a copy beside its original, as a fork of it would be
"""

import json
from collections.abc import Container, Mapping
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.records.once import check_call_key

_MERGED = {"position": int, "head": int, "text": str, "documents": list}
_DOCUMENT = {"path": str, "version": int, "other": int}


def exported_answer(text: str) -> dict[str, Any] | None:
    """Return the answer of a keyed call as it is exported; None if the call is left out of the file."""
    gave: dict[str, Any] = json.loads(text)
    return None if "timer" in gave else gave


def wrong_with_call(fields: Mapping[str, Any], agents: Container[str]) -> str | None:
    """Return the fault of a keyed call in a file that has these agents; None when there is none."""
    try:
        check_call_key(fields["key"])
    except BadInput as error:
        return str(error)
    if not _answers(fields["verb"], fields["gave"], agents):
        return f"expected the answer that {fields['verb']!r:.60} gives, got {fields['gave']!r:.200}"
    return None


def _answers(verb: str, gave: Mapping[str, Any], agents: Container[str]) -> bool:
    match verb, gave:
        case "prompt" | "steer", {"mail": number, **more}:
            return type(number) is int and number > 0 and not more
        case "send" | "write", {"value": number, **more}:
            return type(number) is int and number > 0 and not more
        case "fork" | "fork_many", {"children": [*children], "value": value, **more}:
            named = value if isinstance(value, list) else [value]
            return all(isinstance(child, str) and child in agents for child in (*children, *named)) and not more
        case "merge", {"value": dict(outcome), **more}:
            return _is_outcome(outcome) and not more
    return False


def _is_outcome(outcome: Mapping[str, Any]) -> bool:
    usage = outcome.get("usage")
    return (
        outcome.keys() <= {*_MERGED, "usage"}
        and _fits(outcome, _MERGED)
        and all(
            isinstance(document, dict) and _fits({"other": 0, **document}, _DOCUMENT)
            for document in outcome["documents"]
        )
        and (usage is None or (isinstance(usage, dict) and all(type(number) is int for number in usage.values())))
    )


def _fits(fields: Mapping[str, Any], types: Mapping[str, type]) -> bool:
    return all(type(fields.get(name)) is wanted for name, wanted in types.items())
