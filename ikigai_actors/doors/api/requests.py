"""Requests to the API: their body, their key, and the checks of their values."""

import json
from typing import Any

from ikigai_actors.doors.api.problems import ApiProblem
from ikigai_actors.http_server.requests import MOST_BODY, HttpRequest

_LARGEST_NUMBER = 2**63
_DEEPEST = 100


class ApiRequest(HttpRequest):
    """A request to the API, with its idempotency key and its JSON body."""

    @property
    def key(self) -> str | None:
        """Return the idempotency key of the request; None without one."""
        return self.headers.get("idempotency-key")

    @property
    def prefers_wait(self) -> float:
        """Return the seconds that the client wants to wait for the outcome, by ``Prefer: wait=20``."""
        for preference in self.headers.get("prefer", "").split(","):
            name, _, value = preference.strip().partition("=")
            if name.lower() == "wait":
                return seconds(value, "the preference wait")
        return 0.0

    async def json(self) -> dict[str, Any]:
        """Return the body, a JSON object; ``{}`` for an empty body. Raises `ApiProblem` and `RequestRefused`."""
        body = await self.body(MOST_BODY)
        # curl -d says that it sends a form; a browser of another site could send one as well, but no token with it
        if body and self.media not in ("", "application/json", "application/x-www-form-urlencoded"):
            raise ApiProblem("media", f"Expected a body of application/json; got {self.media[:80]}.")
        return json_object(body)


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body, if every database can store it. Raises `ApiProblem`."""
    try:
        value = json.loads(body or b"{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ApiProblem("bad-json", f"Expected a JSON object: {str(error)[:200]}.") from None
    if not isinstance(value, dict):
        raise ApiProblem("bad-json", "Expected a JSON object.")
    check_storable(value)
    return value


def check_storable(value: Any, depth: int = 0) -> None:
    """Refuse values that databases cannot store: a NUL, half of a surrogate pair, a number of more than 64 bits.

    Raises `ApiProblem`.
    """
    if depth > _DEEPEST:
        raise ApiProblem("bad-json", f"Expected JSON of at most {_DEEPEST} levels.")
    match value:
        case str():
            if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
                raise ApiProblem("bad-input", "A text has a NUL, or half of a surrogate pair.")
        case dict():
            for name, inner in value.items():
                check_storable(name, depth + 1)
                check_storable(inner, depth + 1)
        case list():
            for inner in value:
                check_storable(inner, depth + 1)
        case int():
            if not -_LARGEST_NUMBER <= value < _LARGEST_NUMBER:
                raise ApiProblem("bad-input", "A number has more than 64 bits.")


def seconds(text: str, what: str, most: float = 60.0) -> float:
    """Return a number of seconds to wait, at most ``most``; ``what`` names the field. Raises `ApiProblem`."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ApiProblem("bad-input", f"Expected {what} to be a number of seconds; got {text[:80]!r}.")
    return min(value, most)


def number_in(text: str, what: str, most: int = _LARGEST_NUMBER - 1) -> int:
    """Return a whole number of a query; ``what`` names the field. Raises `ApiProblem`."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise ApiProblem("bad-input", f"Expected {what} to be a number of 0 to {most}; got {text[:80]!r}.")
    return int(text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
