"""The guard decides who may talk to the server. A client can type into the shell, so only the server's own pages may.

    Host      must be ours: a foreign name that leads to this machine (DNS rebinding) is refused
    Origin    must be ours if the browser sends it, and a WebSocket must send it: other pages are refused
    secret    the token of the link that was printed becomes a cookie, once; from then on the cookie is required. A
              program may send the token as a bearer instead. A client without any of them gets an answer, and its
              connection is closed; one with it is a guest

Every answer forbids the browser to load anything from elsewhere, to show the page inside another one, and to let other
servers know where it comes from.
"""

import asyncio
import secrets
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

TERMINAL_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    "img-src 'self' data:; connect-src 'self' ws://{place}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page of a terminal may load. A style sheet of its own is in it."""

OWN_FILES_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a page may load that is made of files of the server alone."""

_BEARER = "Bearer "


class Guard:
    """Guards one server. Its secrets end with it."""

    def __init__(self, place: str, policy: str = TERMINAL_POLICY, token: str = "") -> None:
        """Guard ``place``, as ``127.0.0.1:8000``, whose pages load what the ``policy`` allows.

        ``token`` is the secret; without one it makes its own.
        """
        self._place, self._policy = place, policy
        self.token = token or secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"ikigai_{place.rpartition(':')[2]}"  # cookies know no ports: two servers do not meet

    @property
    def link(self) -> str:
        """The link that a person opens."""
        return f"http://{self._place}/?token={self.token}"

    def middleware(self, admit: Callable[[asyncio.BaseTransport | None], bool]) -> Middleware:
        """The middleware before every handler. ``admit`` gets connections that may come in: see `Acceptor.admit`."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                self._check(request)
            except web.HTTPForbidden as refused:
                refused.force_close()
                raise
            if not admit(request.transport):
                raise web.HTTPServiceUnavailable(text="Too many pages are open: close one, and try again.\n")
            if self._has_token(request):
                answer = web.Response(status=303, headers={"Location": "/"})  # so the browser does not keep the link
                answer.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict", path="/")
                return answer
            return await handler(request)

        return guarded

    async def harden(self, request: web.Request, response: web.StreamResponse) -> None:
        """Put the rules for the browser on an answer that is about to be sent."""
        response.headers.update(
            {
                "Content-Security-Policy": self._policy.format(place=self._place),
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                "Referrer-Policy": "no-referrer",
                "Cache-Control": "no-store",
            }
        )

    def _check(self, request: web.Request) -> None:
        """Refuse a request that breaks the rules."""
        origin, ours = request.headers.get("Origin"), f"http://{self._place}"
        if request.headers.get("Host") != self._place:
            raise web.HTTPForbidden(text=f"Expected Host {self._place}.\n")
        if origin != ours and (origin is not None or request.path == "/ws"):
            raise web.HTTPForbidden(text=f"Expected Origin {ours}.\n")
        if not (self._has_token(request) or self._has_session(request)):
            raise web.HTTPForbidden(text="Open the link that was printed when this server began.\n")

    def _has_token(self, request: web.Request) -> bool:
        return request.path == "/" and self._same(request.query.get("token"), self.token)

    def _has_session(self, request: web.Request) -> bool:
        given = request.headers.get("Authorization", "")
        if given.startswith(_BEARER) and self._same(given.removeprefix(_BEARER), self.token):
            return True
        return self._same(request.cookies.get(self._cookie), self._session)

    @staticmethod
    def _same(given: str | None, secret: str) -> bool:
        return given is not None and secrets.compare_digest(given.encode(errors="replace"), secret.encode())
