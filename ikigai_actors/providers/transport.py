"""The connections of the clients, and what can be wrong with what they are made of before any is opened."""

import os
from typing import TYPE_CHECKING

from ikigai_actors.errors import ProviderError

if TYPE_CHECKING:
    from httpx2 import AsyncClient

_CERTIFICATES = "SSL_CERT_FILE"
"""The variable that names a file of certificates."""


def new_transport() -> "AsyncClient":
    """The transport of a client, without a limit of connections.

    Raises:
        ProviderError: The file of certificates that is named cannot be read.
    """
    # Anthropic's, for all clients: it distinguishes a refused connection from one that is late, and OpenAI's does not.
    import anthropic
    import httpx2

    named = os.environ.get(_CERTIFICATES)
    try:
        # 0, not None: this transport reads None as aiohttp's default of 100, and the next request would wait silently.
        return anthropic.DefaultAioHttpClient(limits=httpx2.Limits(max_connections=0))
    except OSError as error:
        if not named:
            raise
        raise ProviderError(
            f"The certificates that {_CERTIFICATES} names cannot be read ({named!r}: {error}): set it to a file of "
            "certificates, or unset it.",
            unavailable=True,
            free=True,
        ) from error


def check_key(key: str, setting: str) -> str:
    """The key, if a header can carry it; else raises `ProviderError`, which names the setting alone."""
    if not (key.isascii() and key.isprintable()):
        raise ProviderError(
            f"The key in {setting} has a character that no header can carry, as a line end: copy it again.",
            unavailable=True,
            free=True,
        )
    return key
