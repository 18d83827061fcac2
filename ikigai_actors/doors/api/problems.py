"""Problems: the refusals of the API, each a code with a status, in the form of RFC 9457.

    {"type": "urn:ikigai:problem:not-found", "title": "Not found", "status": 404, "detail": "…"}

A client decides by ``type`` or ``status``; ``detail`` is for people. A refused request has changed nothing.
"""

from collections.abc import Mapping
from typing import Any

from ikigai_actors import errors

PROBLEM_STATUSES: Mapping[str, int] = {
    "bad-input": 400,
    "bad-json": 400,
    "cut-off": 400,
    "no-token": 401,
    "forged": 401,
    "not-allowed": 403,
    "looks-only": 403,
    "not-found": 404,
    "no-get": 405,
    "no-method": 405,
    "too-slow": 408,
    "refused": 409,
    "agent-dead": 409,
    "pruned": 410,
    "too-large": 413,
    "media": 415,
    "key-reused": 422,
    "large-headers": 431,
    "too-many": 429,
    "internal": 500,
    "no-host": 503,
    "database-away": 503,
    "not-yet": 503,
    "busy": 503,
    "ending": 503,
}
"""The status of each code."""

_CODES: tuple[tuple[type[errors.IkigaiError], str], ...] = (
    (errors.LooksOnly, "looks-only"),
    (errors.NotAllowed, "not-allowed"),
    (errors.Forged, "forged"),
    (errors.EndpointNotFound, "not-found"),
    (errors.KeyTaken, "key-reused"),
    (errors.BadInput, "bad-input"),
    (errors.AgentNotFound, "not-found"),
    (errors.AmbiguousAgent, "not-found"),
    (errors.DocumentNotFound, "not-found"),
    (errors.AgentDead, "agent-dead"),
    (errors.HistoryPruned, "pruned"),
    (errors.NoHost, "no-host"),
    (errors.SystemClosed, "ending"),
    (errors.StoreError, "database-away"),
)
"""The codes of errors, by class; the first matching class counts, and any other error is ``refused``."""


class ApiProblem(Exception):
    """A refusal of a request, with its code and status."""

    def __init__(self, code: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.code, self.detail, self.more = code, detail, more
        self.status = PROBLEM_STATUSES[code]
        self.headers = {**({"Retry-After": "2"} if self.status in (429, 503) else {}), **(headers or {})}

    def as_json(self) -> dict[str, Any]:
        """Return the body of the answer."""
        return {
            "type": f"urn:ikigai:problem:{self.code}",
            "title": self.code.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }


def api_problem(error: errors.IkigaiError) -> ApiProblem:
    """Return the refusal for an error of this package."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), "refused")
    agent = getattr(error, "agent", "")
    return ApiProblem(code, str(error), None, **({"agent": agent} if isinstance(agent, str) and agent else {}))
