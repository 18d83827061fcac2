"""Results of OpenAI's batches as events of the streamed protocols. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from ikigai_actors.providers.batches import BatchResult, MemberOutcome

_REFUSED = frozenset({400, 403, 404, 413, 422})
"""The statuses of requests that are at fault themselves."""


def one_chunk(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole chat completion in the form of a single chunk of a stream."""
    choices = completion.get("choices")
    deltas = [{**choice, "delta": choice.get("message")} for choice in (choices if isinstance(choices, list) else ())]
    return {**completion, "choices": deltas}


def last_event(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole response in the form of the last event of a stream."""
    return {"type": "response.completed", "response": response}


def batch_result_of(line: Mapping[str, Any]) -> BatchResult:
    """Return the result in a line of a batch's file of results or errors."""
    response, error = line.get("response") or {}, line.get("error") or {}
    status, body = response.get("status_code"), response.get("body")
    if status == 200:
        return BatchResult(str(line["custom_id"]), MemberOutcome("succeeded", json.dumps(body)))
    details = error or (body or {}).get("error") or {}
    kind = "refused" if status in _REFUSED else "expired" if details.get("code") == "batch_expired" else "errored"
    reason = f"{details.get('code') or status}: {details.get('message')}"
    return BatchResult(str(line["custom_id"]), MemberOutcome(kind, reason))
