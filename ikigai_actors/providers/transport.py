"""The connections of the clients, and checks of keys and certificates before any connection is opened."""

from typing import TYPE_CHECKING

from ikigai_actors.certificates import trusted_authorities
from ikigai_actors.errors import BadInput, ProviderError

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

_LONGEST_PAGE = 2**20
"""The most bytes of an error page that are read."""


def new_transport() -> "AsyncClient":
    """Return the transport of a client, without a limit of connections.

    Raises:
        ProviderError: The file of certificates that is named cannot be read.
    """
    import httpx2

    from ikigai_actors.providers.connections import Connections

    try:
        trusted = trusted_authorities()
    except BadInput as error:
        raise ProviderError(str(error), unavailable=True, free=True) from error
    # 0, not None: this transport reads None as aiohttp's default of 100, and the next request would wait silently.
    limits = httpx2.Limits(max_connections=0)
    return Connections(verify=trusted, limits=limits, follow_redirects=True, event_hooks={"response": [shorten_page]})


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
