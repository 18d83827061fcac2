"""A request of ASGI, as much of it as one application needs."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from ikigai_actors.doors.api.problems import ApiProblem

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
SendEvent = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BODY = 4 * 1024 * 1024
"""Bytes of a body."""

MOST_HEADERS = 64 * 1024
"""Bytes of the path, the query and the headers together."""

BODY_SECONDS = 20.0
"""Seconds within which a body must have come."""

_LARGEST_NUMBER = 2**63
_DEEPEST = 100


class ApiRequest:
    """One request."""

    def __init__(self, scope: AsgiScope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.root: str = scope.get("root_path", "").rstrip("/")
        """The path under which the application is mounted; it begins every link."""
        self._scope, self._receive = scope, receive
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        """By lower-case names, the last one of each."""

    @property
    def parts(self) -> list[str]:
        """The parts of the path below the root. A slash that was quoted parts nothing."""
        raw: bytes | None = self._scope.get("raw_path")
        path = self._scope["path"] if raw is None else raw.split(b"?")[0].decode("latin-1")
        if self.root and path.startswith(f"{self.root}/"):
            path = path[len(self.root) :]
        return [unquote(part, errors="strict") if raw is not None else part for part in path.strip("/").split("/")]

    @property
    def query(self) -> dict[str, str]:
        """The parameters, the last one of each name."""
        return dict(parse_qsl(self._scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))

    @property
    def address(self) -> str:
        """The address of the client; empty where it is not known."""
        client = self._scope.get("client")
        return str(client[0]) if client else ""

    @property
    def bearer(self) -> str:
        """The token of the header Authorization; empty for none."""
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""

    @property
    def key(self) -> str | None:
        """The key under which the client repeats the request; None for none."""
        return self.headers.get("idempotency-key")

    @property
    def prefers_wait(self) -> float:
        """Seconds that the client wants to wait for the outcome: ``Prefer: wait=20``."""
        for preference in self.headers.get("prefer", "").split(","):
            name, _, value = preference.strip().partition("=")
            if name.lower() == "wait":
                return seconds(value, "the preference wait")
        return 0.0

    async def json(self) -> dict[str, Any]:
        """The body, a JSON object; an empty body is an empty one. Raises `ApiProblem`."""
        media = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await self.body(MOST_BODY)
        # curl -d says that it sends a form; a browser of another site could send one as well, but no token with it
        if body and media not in ("", "application/json", "application/x-www-form-urlencoded"):
            raise ApiProblem("media", f"Expected a body of application/json; got {media[:80]}.")
        return json_object(body)

    async def body(self, most: int) -> bytes:
        """The body. Of one that is too large, or too slow, no more is read. Raises `ApiProblem`."""
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most:
            raise ApiProblem("too-large", f"Expected a body of at most {most:,} bytes.")
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                more = True
                while more:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ApiProblem("cut-off", "The body was cut off.")
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise ApiProblem("too-large", f"Expected a body of at most {most:,} bytes.")
                    more = message.get("more_body", False)
        except TimeoutError:
            raise ApiProblem("too-slow", f"The body has not come within {BODY_SECONDS:g} s.") from None
        return bytes(body)

    async def gone(self) -> None:
        """Return when the client has gone. For a request without a body, or after it."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def check_headers(scope: AsgiScope) -> None:
    """Refuse a request whose target and headers are too large. Raises `ApiProblem`.

    The server refuses one by itself whose head does not end (`ikigai_actors.doors.api.serving`).
    """
    target = len(scope.get("raw_path") or scope["path"]) + len(scope.get("query_string", b""))
    if target + sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADERS:
        raise ApiProblem("large-headers", f"Expected headers and a path of at most {MOST_HEADERS:,} bytes.")


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body, which any database can hold. Raises `ApiProblem`."""
    try:
        value = json.loads(body or b"{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ApiProblem("bad-json", f"Expected a JSON object: {str(error)[:200]}.") from None
    if not isinstance(value, dict):
        raise ApiProblem("bad-json", "Expected a JSON object.")
    check_storable(value)
    return value


def check_storable(value: Any, depth: int = 0) -> None:
    """Refuse what no database holds: a NUL, half of a surrogate pair, a number of more than 64 bits.

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
    """Seconds to wait, at most a minute. Raises `ApiProblem`."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ApiProblem("bad-input", f"Expected {what} to be a number of seconds; got {text[:80]!r}.")
    return min(value, most)


def number_in(text: str, what: str, most: int = _LARGEST_NUMBER - 1) -> int:
    """A number of a query. Raises `ApiProblem`."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise ApiProblem("bad-input", f"Expected {what} to be a number of 0 to {most}; got {text[:80]!r}.")
    return int(text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
