"""JSON answers of the API, and the headers that every answer has."""

from ikigai_actors.doors.api.problems import ApiProblem
from ikigai_actors.http_server.answers import answer
from ikigai_actors.http_server.requests import SendEvent

PROBLEM = "application/problem+json"

API_RULES = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
"""The headers of every answer."""


async def answer_problem(out: SendEvent, problem: ApiProblem) -> None:
    """Send a refusal as the answer of a request."""
    await answer(out, problem.status, problem.as_json(), problem.headers, PROBLEM)
