"""The connections of the clients, and checks of keys and certificates before any connection is opened."""

import os
from functools import cache
from typing import TYPE_CHECKING

from ikigai_actors.errors import ProviderError

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncClient, Response

_CERTIFICATES, _DIRECTORY = "SSL_CERT_FILE", "SSL_CERT_DIR"
"""The variables that name a file of certificates, and a directory with some."""
_LONGEST_PAGE = 2**20
"""The most bytes of an error page that are read."""


def new_transport() -> "AsyncClient":
    """Return the transport of a client, without a limit of connections.

    Raises:
        ProviderError: The file of certificates that is named cannot be read.
    """
    import httpx2

    from ikigai_actors.providers.connections import Connections

    named = os.environ.get(_CERTIFICATES)
    try:
        # 0, not None: this transport reads None as aiohttp's default of 100, and the next request would wait silently.
        limits = httpx2.Limits(max_connections=0)
        trusted = _trusted(named, os.environ.get(_DIRECTORY))
        return Connections(
            verify=trusted, limits=limits, follow_redirects=True, event_hooks={"response": [shorten_page]}
        )
    except OSError as error:
        if not named:
            raise
        raise ProviderError(
            f"The certificates that {_CERTIFICATES} names cannot be read ({named!r}: {error}): set it to a file of "
            "certificates, or unset it.",
            unavailable=True,
            free=True,
        ) from error


@cache
def _trusted(file: str | None, directory: str | None) -> "SSLContext":
    """Return the certificates that the environment names, else the system's. Loaded once, since it takes 20 ms."""
    import httpx2

    return httpx2.create_ssl_context()


def check_key(key: str, setting: str) -> str:
    """Return the key, if a header can carry it; else raise `ProviderError`, which names only the setting."""
    if not (key.isascii() and key.isprintable()):
        raise ProviderError(
            f"The key in {setting} has a character that no header can carry, as a line end: copy it again.",
            unavailable=True,
            free=True,
        )
    return key


async def shorten_page(response: "Response") -> None:
    """Read only the beginning of an error page, because clients would read all of it, and it may be endless."""
    if not response.is_error:
        return
    import httpx2

    begun, stream = bytearray(), response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    async for piece in stream:
        begun += piece
        if len(begun) >= _LONGEST_PAGE:
            break
    await stream.aclose()
    response.stream = httpx2.ByteStream(bytes(begun[:_LONGEST_PAGE]))
