"""Sends deliveries over HTTP, on a separate event loop, which begins with the first delivery.

Anybody may name a receiver's address, so each connection is checked (`AllowedAddresses`): a socket is opened only to
the checked address, which a look-up returned or which the URL contains. Redirections are not followed, no cookies are
stored, and no proxy of the environment is used: each could lead to another address.
"""

import asyncio
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from math import isfinite
from threading import Lock
from time import time
from typing import TYPE_CHECKING, Any

from ikigai_actors.actors.event_loop import EndlessLoop
from ikigai_actors.actors.threads import Threads
from ikigai_actors.records.outbox.addresses import AllowedAddresses
from ikigai_actors.records.outbox.retries import ReceiverAnswer
from ikigai_actors.system.guarded_http import guarded_sockets
from ikigai_actors.system.host.deliveries import SENT_AT_ONCE, Outgoing, ReceiverLink

if TYPE_CHECKING:
    from aiohttp import ClientSession

SEND_SECONDS = 15.0
"""Seconds that a receiver has to answer."""

_MOST_READ = 200
"""The most bytes of an answer that are read, and shown to people."""


class HttpLink(ReceiverLink):
    """Sends requests to receivers over HTTP, on an event loop of its own thread."""

    def __init__(self, allowed: AllowedAddresses, threads: Threads) -> None:
        """Make a link. The event loop begins with the first request."""
        self._allowed, self._threads = allowed, threads
        self._lock = Lock()
        self._loop: EndlessLoop | None = None
        self._thread: Any = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._sessions: dict[str, ClientSession] = {}
        self._closed = False

    def send(self, outgoing: Outgoing, done: Callable[[ReceiverAnswer], object]) -> None:
        with self._lock:
            if self._closed:
                return
            if self._loop is None:
                self._loop = self._threads.new_event_loop()
                self._thread = self._threads.thread(self._loop.run_to_end, "ikigai-deliveries")
                self._thread.start()
            self._loop.call_soon_threadsafe(self._begin, outgoing, done)

    def close(self) -> None:
        with self._lock:
            self._closed, loop = True, self._loop
        if loop is not None:
            loop.call_soon_threadsafe(lambda: loop.create_task(self._end(loop)))
            self._thread.join()
            loop.close()

    def _begin(self, outgoing: Outgoing, done: Callable[[ReceiverAnswer], object]) -> None:
        assert self._loop is not None
        task = self._loop.create_task(self._send(outgoing, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, outgoing: Outgoing, done: Callable[[ReceiverAnswer], object]) -> None:
        try:
            answer = await asyncio.wait_for(self._posted(outgoing), SEND_SECONDS)
        except TimeoutError:
            answer = ReceiverAnswer(0, f"no answer within {SEND_SECONDS:g} s")
        except (OSError, ValueError) as error:  # aiohttp's errors of connections are of these
            answer = ReceiverAnswer(0, f"no answer: {error}")
        except Exception as error:  # of aiohttp: a receiver that speaks something else
            answer = ReceiverAnswer(0, f"no answer: {type(error).__name__}: {error}")
        if not self._closed:  # else the next host sends it again
            done(answer)

    async def _posted(self, outgoing: Outgoing) -> ReceiverAnswer:
        http = self._session(outgoing.url.partition(":")[0].lower())
        async with http.post(
            outgoing.url, data=outgoing.body, headers=outgoing.headers, allow_redirects=False
        ) as answer:
            begun = (await answer.content.read(_MOST_READ)).decode("utf-8", "replace")
            said = " ".join(f"{answer.status} {answer.reason or ''} {begun if answer.status >= 300 else ''}".split())
            return ReceiverAnswer(answer.status, said, _seconds(answer.headers.get("Retry-After", "")))

    def _session(self, scheme: str) -> "ClientSession":
        """Return the HTTP session for a scheme. Without TLS it reaches only networks that the operator has allowed."""
        if (known := self._sessions.get(scheme)) is not None:
            return known
        import aiohttp

        connector = aiohttp.TCPConnector(
            socket_factory=guarded_sockets(self._allowed, tls=scheme == "https"),
            limit=SENT_AT_ONCE,
            use_dns_cache=False,
        )
        known = self._sessions[scheme] = aiohttp.ClientSession(
            connector=connector,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=SEND_SECONDS),
        )
        return known

    async def _end(self, loop: EndlessLoop) -> None:
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # until then they may still make a session
        for session in self._sessions.values():
            await session.close()
        await asyncio.sleep(0)
        loop.finish()


def _seconds(text: str) -> float:
    """Return the seconds in a ``Retry-After`` header; 0 if the header has none."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time()
        except (ValueError, TypeError, IndexError, OverflowError):
            return 0.0
    return max(0.0, seconds) if isfinite(seconds) else 0.0
