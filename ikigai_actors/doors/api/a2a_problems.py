"""Refusals of A2A: the body of a ``google.rpc.Status``, with the reason by which clients decide.

{"error": {"code": 404, "status": "NOT_FOUND", "message": "…", "details": [{"@type": "…ErrorInfo", "reason":
"TASK_NOT_FOUND", "domain": "a2a-protocol.org"}]}}
"""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.doors.api.problems import ApiProblem
from ikigai_actors.http_server.answers import answer
from ikigai_actors.http_server.requests import SendEvent

MEDIA_A2A = "application/a2a+json"

TASK_NOT_FOUND, TASK_NOT_CANCELABLE = "TASK_NOT_FOUND", "TASK_NOT_CANCELABLE"
UNSUPPORTED_OPERATION, CONTENT_TYPE_NOT_SUPPORTED = "UNSUPPORTED_OPERATION", "CONTENT_TYPE_NOT_SUPPORTED"
VERSION_NOT_SUPPORTED = "VERSION_NOT_SUPPORTED"

_REASONS: Mapping[str, str] = {
    "bad-input": "INVALID_PARAMS",
    "key-reused": "INVALID_PARAMS",
    "bad-json": "INVALID_REQUEST",
}
"""The A2A reasons for codes of the API, where they differ from the code."""

_OF_STATUS: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    410: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


class A2aRefused(Exception):
    """A refusal of a request, with the reason that A2A defines."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason, self.text = reason, text


async def answer_refusal(out: SendEvent, error: A2aRefused | ApiProblem) -> None:
    """Send a refusal to the client, as A2A's error."""
    if isinstance(error, ApiProblem):
        reason = _REASONS.get(error.code, error.code.upper().replace("-", "_"))
        status, code = error.status, _OF_STATUS.get(error.status, "INVALID_ARGUMENT")
        await answer(out, status, _body(status, code, reason, error.detail), error.headers, MEDIA_A2A)
        return
    missing = error.reason == TASK_NOT_FOUND
    of_input = error.reason == CONTENT_TYPE_NOT_SUPPORTED
    code = "NOT_FOUND" if missing else "INVALID_ARGUMENT" if of_input else "FAILED_PRECONDITION"
    status = 404 if missing else 400
    await answer(out, status, _body(status, code, error.reason, error.text), media=MEDIA_A2A)


def _body(status: int, code: str, reason: str, text: str) -> dict[str, Any]:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}
    return {"error": {"code": status, "status": code, "message": text, "details": [info]}}
