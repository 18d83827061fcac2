"""An application is served with its guard: `serving` puts the guard first, so that no server lacks it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from ikigai_actors.http_server.acceptor import Acceptor, ConnectionLimits
from ikigai_actors.http_server.guard import Guard

KEPT = 3600.0
"""Seconds for which a connection is kept between two requests."""


@asynccontextmanager
async def serving(
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

    application.middlewares.insert(0, guard.middleware(admit))
    application.on_response_prepare.append(guard.harden)
    # No access log: it would hold the link.
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=ending, keepalive_timeout=kept)
    await runner.setup()
    assert runner.server is not None
    acceptor = Acceptor(listening, runner.server, limits)
    try:
        yield
    finally:
        await acceptor.close()
        await runner.cleanup()
