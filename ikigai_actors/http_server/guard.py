"""The guard decides which clients may use a server.

A client can reach the agents, so only our own programs and pages are admitted.

    Host      must name this server: a foreign name that resolves to this machine (DNS rebinding) is refused
    Origin    must equal that Host if a request has it, and a WebSocket request must have it: so other pages are refused
    secret    a program sends the token as a bearer. For a page, the token of the link that was printed becomes a
              cookie, once; from then on the cookie is required. A client without token and cookie gets an answer, and
              its connection is closed; a client with one of them is a guest
    probe     ``GET /healthz`` says to anybody that the server answers, and nothing else

Every answer forbids the browser to load anything from elsewhere, to show the page inside another one, and to send its
address to other servers.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple

_NO_OTHERS = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

NO_PAGE_POLICY = f"default-src 'none'; {_NO_OTHERS}"
"""The content security policy of servers for programs, whose answers are never pages."""

TERMINAL_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    f"img-src 'self' data:; connect-src 'self' ws://{{place}}; {_NO_OTHERS}"
)
"""The content security policy of the terminal page, which has a style sheet of its own."""

OWN_FILES_POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; {_NO_OTHERS}"
)
"""The content security policy of pages made of files of the server alone."""


HEALTH = "/healthz"
"""The path at which a health probe is answered, without the token, under the server's own name for this machine."""


class RequestHead(NamedTuple):
    """The head of a request, with the fields that a guard needs."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Headers by lower-case name. A repeated header has both values joined, so that it matches no allowed value."""
    query: Mapping[str, str]


class GuardAnswer(NamedTuple):
    """The answer that a guard sends instead of a handler."""

    status: int
    text: str = ""
    headers: Mapping[str, str] = {}
    """More headers than the rules for browsers."""


_CLOSES = {"Connection": "close"}


class Guard:
    """Guards a server for programs: decides by the head of a request whether the request reaches a handler."""

    def __init__(self, *places: str, token: str = "", policy: str = NO_PAGE_POLICY) -> None:
        """Guard a server whose names with port are ``places``, as ``127.0.0.1:8000``.

        ``token`` is the secret. Without a token the guard makes a new secret, which is valid for this guard only.
        """
        self._places, self._policy = places, policy.format(place=places[0])
        self.token = token or secrets.token_urlsafe(32)

    def answer(self, head: RequestHead, admit: Callable[[], bool]) -> GuardAnswer | None:
        """Return the answer to a request that no handler gets; None if the request goes on to its handler.

        Args:
            head: the request.
            admit: makes a guest of the connection; False when there is no room: see `Acceptor.admit`.
        """
        if head.path == HEALTH and head.method in ("GET", "HEAD"):
            return GuardAnswer(200, "ok\n", _CLOSES)
        if (refusal := self.refusal(head)) is not None:
            return refusal
        if not admit():
            return GuardAnswer(503, "Too many pages are open: close one, and try again.\n", _CLOSES)
        return self._arrival(head)

    def refusal(self, head: RequestHead) -> GuardAnswer | None:
        """Return the answer that refuses a request; None for a request that is let in."""
        host, origin = head.headers.get("host"), head.headers.get("origin")
        if host not in self._places:
            return GuardAnswer(403, f"Expected Host {' or '.join(self._places)}.\n", _CLOSES)
        if origin != f"http://{host}" and (origin is not None or head.path == "/ws"):
            return GuardAnswer(403, f"Expected Origin http://{host}.\n", _CLOSES)
        if self._has_secret(head):
            return None
        return GuardAnswer(401, f"{self._expected}\n", {**_CLOSES, "WWW-Authenticate": "Bearer"})

    @property
    def rules(self) -> dict[str, str]:
        """Return the headers of every answer: rules for the browser, and nothing about the server software."""
        return {
            "Server": "ikigai",
            "Content-Security-Policy": self._policy,
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }

    _expected = "Expected Authorization: Bearer, with the token."

    def _has_secret(self, head: RequestHead) -> bool:
        kind, _, secret = head.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and same_secret(secret.strip(), self.token)

    def _arrival(self, head: RequestHead) -> GuardAnswer | None:
        """Return the guard's own answer to a request that first shows the secret; None if a handler answers it."""
        return None


class PageGuard(Guard):
    """Guards a server of pages that people open by a link. Programs may use the server as well."""

    _expected = "Open the link that was printed when this server began."

    def __init__(self, place: str, policy: str, token: str = "") -> None:
        """Guard ``place``; its pages may load what the content security ``policy`` allows."""
        super().__init__(place, token=token, policy=policy)
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"ikigai_{place.rpartition(':')[2]}"  # cookies know no ports: two servers do not meet
        self.link = f"http://{place}/?token={self.token}"
        """The link that a person opens."""

    def _has_secret(self, head: RequestHead) -> bool:
        return (
            super()._has_secret(head)
            or self._has_token(head)
            or same_secret(_cookie_of(head.headers.get("cookie", ""), self._cookie), self._session)
        )

    def _arrival(self, head: RequestHead) -> GuardAnswer | None:
        if not self._has_token(head):
            return None
        cookie = f"{self._cookie}={self._session}; HttpOnly; Path=/; SameSite=Strict"
        return GuardAnswer(303, "", {"Location": "/", "Set-Cookie": cookie})  # so the browser does not keep the link

    def _has_token(self, head: RequestHead) -> bool:
        return head.path == "/" and same_secret(head.query.get("token", ""), self.token)


def _cookie_of(header: str, name: str) -> str:
    for part in header.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""


def same_secret(text: str, secret: str) -> bool:
    """Return whether a client's secret is right, in constant time."""
    return secrets.compare_digest(text.encode(errors="replace"), secret.encode())
