"""Serves the application of textual-serve, an aiohttp application, with the guard that all servers use."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from ikigai_actors.http_server.acceptor import Acceptor, ConnectionLimits
from ikigai_actors.http_server.guard import Guard, RequestHead

KEPT = 3600.0
"""Seconds for which a connection is kept between two requests."""


class GuardedConnection(web.RequestHandler):
    """A connection whose error answers from aiohttp itself have the guard's headers, too."""

    __slots__ = ("_guard",)

    def __init__(self, guard: Guard, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._guard = guard

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status < 500 and not request.writer.output_size:  # what a stranger sends is no line of a log
            answer: web.StreamResponse = web.Response(status=status, text=f"{message or HTTPStatus(status).phrase}\n")
            answer.force_close()
        else:
            answer = super().handle_error(request, status, exc, message)
        answer.headers.update(self._guard.rules)
        return answer


@asynccontextmanager
async def serving_terminals(
    application: web.Application,
    guard: Guard,
    listening: socket.socket,
    limits: ConnectionLimits,
    ending: float,
    kept: float = KEPT,
) -> AsyncIterator[None]:
    """Serve an application within the block.

    Args:
        application: the application; it has no guard yet.
        guard: decides on every request, before all else.
        listening: the bound socket; it is closed with the block.
        limits: how many connections may be open.
        ending: seconds that open requests have when the block ends.
        kept: seconds for which a connection is kept between two requests.
    """

    def admit(transport: asyncio.BaseTransport | None) -> bool:
        return acceptor.admit(transport)  # there is one before the first request

    async def harden(request: web.BaseRequest, response: web.StreamResponse) -> None:
        response.headers.update(guard.rules)

    application.middlewares.insert(0, guarding(guard, admit))
    application.on_response_prepare.append(harden)
    # No access log: it would hold the link.
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=ending)
    await runner.setup()
    server, loop = runner.server, asyncio.get_running_loop()
    assert server is not None
    connect = partial(GuardedConnection, guard, server, loop=loop, access_log=None, keepalive_timeout=kept)
    acceptor = Acceptor(listening, connect, limits)
    try:
        yield
    finally:
        await acceptor.close()
        await runner.cleanup()


def guarding(guard: Guard, admit: Callable[[asyncio.BaseTransport | None], bool]) -> Middleware:
    """Return the aiohttp middleware that runs the guard before every handler.

    ``admit`` gets accepted connections: see `Acceptor.admit`.
    """

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = {name.lower(): ", ".join(request.headers.getall(name)) for name in request.headers}
        head = RequestHead(request.method, request.path, headers, request.query)
        refused = guard.answer(head, lambda: admit(request.transport))
        if refused is None:
            return await handler(request)
        answer = web.Response(status=refused.status, text=refused.text, headers=refused.headers)
        if refused.headers.get("Connection") == "close":
            answer.force_close()
        return answer

    return guarded
