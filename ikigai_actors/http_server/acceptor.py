"""The acceptor: takes the connections of a server, and limits those of clients that have not shown the server's secret.

    stranger    a connection without the cookie or the token so far. It has `HEADER_SECONDS` to complete a request with
                one of them. At the limit, a new stranger closes the stranger that has waited longest. So a browser
                with the token gets in at once, however many silent sockets others open
    guest       a connection that has shown one of them (`Acceptor.admit`): no time limit, but their number is limited

So the process keeps the rest of its file descriptors for the agents. If no descriptor is left, the acceptor closes the
connection of a stranger, and reports this in the log from time to time.
"""

import asyncio
import contextlib
import logging
import math
import resource
import socket
from collections.abc import Callable
from dataclasses import dataclass

from ikigai_actors.errors import BadInput

logger = logging.getLogger(__name__)

HEADER_SECONDS = 10.0
"""Seconds within which a stranger must complete a request with the token or the cookie."""

RETRY_SECONDS = 0.5
"""Seconds to the next attempt to accept a connection after an attempt failed."""

QUIET_SECONDS = 60.0
"""Seconds without an error after which the next error is reported again."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The most connections that strangers, and that guests, may have open."""

    strangers: int = 50
    guests: int = 50

    @staticmethod
    def of_process() -> "ConnectionLimits":
        """Return limits that leave most file descriptors of this process free. A page uses more than its connection."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        share = 50 if soft == resource.RLIM_INFINITY else max(2, min(50, soft // 16))
        return ConnectionLimits(share, share)


class Acceptor:
    """Takes connections from a listening socket, on the running event loop, until it is closed."""

    def __init__(
        self,
        listening: socket.socket,
        serve: Callable[[], asyncio.BaseProtocol],
        limits: ConnectionLimits,
        header_seconds: float = HEADER_SECONDS,
    ) -> None:
        """Start to accept connections.

        Args:
            listening: the socket, bound; it is closed with the acceptor.
            serve: makes the protocol of a connection.
            limits: how many may be open.
            header_seconds: seconds that a stranger has to complete a request.
        """
        self._listening, self._serve, self._limits, self._header_seconds = listening, serve, limits, header_seconds
        self._strangers: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}
        self._guests: set[asyncio.BaseTransport] = set()
        self._troubled = -math.inf
        listening.setblocking(False)
        listening.listen()
        self._work = asyncio.get_running_loop().create_task(self._take_all(), name="ikigai-door")

    def admit(self, transport: asyncio.BaseTransport | None) -> bool:
        """Make a stranger a guest, because it has shown the secret; return False if there is no room for another."""
        if transport is None or transport in self._guests:
            return True
        self._guests = {guest for guest in self._guests if not guest.is_closing()}
        if len(self._guests) >= self._limits.guests:
            return False
        if timer := self._strangers.pop(transport, None):
            timer.cancel()
        self._guests.add(transport)
        return True

    async def close(self) -> None:
        """Accept no more connections, and close the connections of strangers."""
        self._work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._work
        self._listening.close()
        for stranger in list(self._strangers):
            self._put_out(stranger)

    async def _take_all(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listening)
                await self._take(connection)
            except OSError as error:  # no descriptor is left, or no memory
                now = loop.time()
                if now - self._troubled > QUIET_SECONDS:
                    logger.warning(
                        "Could not accept a connection (%s); closing one that has not shown the token", error.strerror
                    )
                self._troubled = now
                if self._strangers:
                    self._put_out(next(iter(self._strangers)))
                await asyncio.sleep(RETRY_SECONDS)

    async def _take(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._strangers = {held: timer for held, timer in self._strangers.items() if not held.is_closing()}
        if len(self._strangers) >= self._limits.strangers:
            self._put_out(next(iter(self._strangers)))
        try:
            stranger, _ = await loop.connect_accepted_socket(self._serve, connection)
        except BaseException:
            connection.close()
            raise
        self._strangers[stranger] = loop.call_later(self._header_seconds, self._put_out, stranger)

    def _put_out(self, stranger: asyncio.BaseTransport) -> None:
        if timer := self._strangers.pop(stranger, None):
            timer.cancel()
        assert isinstance(stranger, asyncio.WriteTransport)
        stranger.abort()


def listen(host: str, port: int) -> socket.socket:
    """Return a bound socket, so that no other program can take the port; port 0 takes a free one. Raises `BadInput`."""
    # Named as TCP, so that asyncio sends each piece at once: else the end of an answer waits 40 ms for an ACK.
    listening = socket.socket(proto=socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise BadInput(f"Port {port} is not available: {error.strerror}. Name another, or 0 for a free one.") from error
    return listening
