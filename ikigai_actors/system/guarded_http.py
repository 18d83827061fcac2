"""HTTP requests to addresses that other parties named: each connection is checked (`AllowedAddresses`).

A socket is opened only to the checked address, which a look-up returned or which the URL contains. Redirections are not
followed, no cookies are kept, and no proxy of the environment is used, because each could lead to another address.
"""

import errno
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.records.outbox.addresses import AllowedAddresses

ANSWER_SECONDS = 15.0
"""The time-out of a request, in seconds."""

LARGEST_ANSWER_READ = 256 * 1024
"""The most bytes of an answer that are read."""


ALLOW_PRIVATE = "IKIGAI_ALLOW_PRIVATE"
"""The environment variable that lists the private networks that may be reached, separated by commas."""


def allowed_addresses(networks: Iterable[str] | None) -> AllowedAddresses:
    """Return the addresses that requests may reach besides public ones: those in these networks.

    None takes the networks of an environment variable. Raises `BadInput` for a text that is no network.
    """
    if networks is None:
        networks = [part for part in os.environ.get(ALLOW_PRIVATE, "").split(",") if part.strip()]
    return AllowedAddresses.of(networks)


class GuardedAnswer(NamedTuple):
    """The answer to an HTTP request: status, headers and body."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes


def guarded_sockets(allowed: AllowedAddresses, *, tls: bool) -> Callable[[Any], socket.socket]:
    """Return a socket factory for aiohttp that refuses all addresses that are not allowed."""

    def make(looked_up: Any) -> socket.socket:
        family, kind, protocol, _, (address, port, *_) = looked_up
        if not allowed.allows(address, port, tls=tls):
            raise OSError(errno.EACCES, f"{address} at port {port} is not an address that this host may reach")
        return socket.socket(family, kind, protocol)

    return make


async def guarded_request(
    allowed: AllowedAddresses,
    method: str,
    url: str,
    headers: Mapping[str, str],
    data: bytes | Mapping[str, str] | None = None,
) -> GuardedAnswer:
    """Send an HTTP request to an allowed address, and return the answer.

    Raises `BadInput` if no answer comes; its text names the host and nothing else of the request.
    """
    import aiohttp

    scheme = url.partition(":")[0].lower()
    if scheme not in ("http", "https"):
        raise BadInput("A server names an address that is neither http nor https.")
    connector = aiohttp.TCPConnector(
        socket_factory=guarded_sockets(allowed, tls=scheme == "https"), use_dns_cache=False
    )
    session = aiohttp.ClientSession(
        connector=connector,
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
    )
    host = url.partition("//")[2].partition("/")[0].rpartition("@")[2][:200]
    try:
        async with (
            session,
            session.request(method, url, headers=dict(headers), data=data, allow_redirects=False) as answer,
        ):
            body = b""
            while len(body) < LARGEST_ANSWER_READ and (piece := await answer.content.read(LARGEST_ANSWER_READ)):
                body += piece
            return GuardedAnswer(answer.status, {name.lower(): text for name, text in answer.headers.items()}, body)
    except TimeoutError:
        raise BadInput(f"{host} did not answer within {ANSWER_SECONDS:g} s.") from None
    except (OSError, ValueError, aiohttp.ClientError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise BadInput(f"{host} cannot be reached: {why}.") from None
