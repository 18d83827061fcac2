"""The guard decides who may talk to a server. A client can reach the agents, so only programs and pages of ours may.

    Host      must be ours: a foreign name that leads to this machine (DNS rebinding) is refused
    Origin    must be of that Host if the client sends it, and a WebSocket must send it: other pages are refused
    secret    a program sends the token as a bearer. For a page, the token of the link that was printed becomes a
              cookie, once; from then on the cookie is required. A client without any of them gets an answer, and its
              connection is closed; one with it is a guest
    probe     ``GET /healthz`` says to anybody that the server answers, and nothing else

Every answer forbids the browser to load anything from elsewhere, to show the page inside another one, and to let other
servers know where it comes from.
"""

import secrets
from asyncio import BaseTransport
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

_NO_OTHERS = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

NO_PAGE_POLICY = f"default-src 'none'; {_NO_OTHERS}"
"""For servers of programs: nothing that they answer is a page."""

TERMINAL_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    f"img-src 'self' data:; connect-src 'self' ws://{{place}}; {_NO_OTHERS}"
)
"""The resources that the page of a terminal may load. A style sheet of its own is in it."""

OWN_FILES_POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; {_NO_OTHERS}"
)
"""The resources that a page may load that is made of files of the server alone."""


HEALTH = "/healthz"
"""Where a probe asks whether the server answers: by its own name for this machine, and without the token."""


class Guard:
    """Guards a server of programs."""

    def __init__(self, *places: str, token: str = "", policy: str = NO_PAGE_POLICY) -> None:
        """Guard a server at ``places``, its names with the port, as ``127.0.0.1:8000``.

        ``token`` is the secret; without one the guard makes its own, which ends with it.
        """
        self._places, self._policy = places, policy.format(place=places[0])
        self.token = token or secrets.token_urlsafe(32)

    def refusal(self, request: web.Request) -> web.HTTPException | None:
        """The answer to a request that may not come in, by its address and headers; None for one that may."""
        host, origin = request.headers.get("Host"), request.headers.get("Origin")
        if host not in self._places:
            return web.HTTPForbidden(text=f"Expected Host {' or '.join(self._places)}.\n")
        if origin != f"http://{host}" and (origin is not None or request.path == "/ws"):
            return web.HTTPForbidden(text=f"Expected Origin http://{host}.\n")
        return None if self._has_secret(request) else self._without_secret()

    def middleware(self, admit: Callable[[BaseTransport | None], bool]) -> Middleware:
        """The middleware before every handler. ``admit`` gets connections that may come in: see `Acceptor.admit`."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path == HEALTH and request.method in ("GET", "HEAD"):
                answer = web.Response(text="ok\n")
                answer.force_close()
                return answer
            if (refusal := self.refusal(request)) is not None:
                refusal.force_close()
                raise refusal
            if not admit(request.transport):
                raise web.HTTPServiceUnavailable(text="Too many pages are open: close one, and try again.\n")
            return self._arrival(request) or await handler(request)

        return guarded

    async def harden(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        """Put the rules for the browser on an answer that is about to be sent."""
        response.headers.update(self.rules)

    @property
    def rules(self) -> dict[str, str]:
        """The headers of every answer: the rules for the browser, and no word about what answers."""
        return {
            "Server": "ikigai",
            "Content-Security-Policy": self._policy,
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }

    def _has_secret(self, request: web.Request) -> bool:
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        return kind.lower() == "bearer" and same_secret(given.strip(), self.token)

    def _without_secret(self) -> web.HTTPException:
        return web.HTTPUnauthorized(
            headers={"WWW-Authenticate": "Bearer"}, text="Expected Authorization: Bearer, with the token.\n"
        )

    def _arrival(self, request: web.Request) -> web.Response | None:
        """The answer to a request that shows the secret for the first time, where that is not a handler's."""
        return None


class PageGuard(Guard):
    """Guards a server of pages, to which a link leads. Programs may come in as well."""

    def __init__(self, place: str, policy: str, token: str = "") -> None:
        """Guard ``place``, whose pages load what the ``policy`` allows."""
        super().__init__(place, token=token, policy=policy)
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"ikigai_{place.rpartition(':')[2]}"  # cookies know no ports: two servers do not meet
        self.link = f"http://{place}/?token={self.token}"
        """The link that a person opens."""

    def _has_secret(self, request: web.Request) -> bool:
        return (
            super()._has_secret(request)
            or self._has_token(request)
            or same_secret(request.cookies.get(self._cookie, ""), self._session)
        )

    def _without_secret(self) -> web.HTTPException:
        return web.HTTPUnauthorized(
            headers={"WWW-Authenticate": "Bearer"}, text="Open the link that was printed when this server began.\n"
        )

    def _arrival(self, request: web.Request) -> web.Response | None:
        if not self._has_token(request):
            return None
        answer = web.Response(status=303, headers={"Location": "/"})  # so the browser does not keep the link
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict", path="/")
        return answer

    def _has_token(self, request: web.Request) -> bool:
        return request.path == "/" and same_secret(request.query.get("token", ""), self.token)


def same_secret(given: str, secret: str) -> bool:
    """Whether a client has given the secret, found out in a time that says nothing of it."""
    return secrets.compare_digest(given.encode(errors="replace"), secret.encode())
