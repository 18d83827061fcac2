"""The authorities whose certificates connections to other servers trust."""

import os
from functools import cache
from typing import TYPE_CHECKING

from ikigai_actors.errors import BadInput

if TYPE_CHECKING:
    from ssl import SSLContext

_FILE, _DIRECTORY = "SSL_CERT_FILE", "SSL_CERT_DIR"
"""The variables that name a file of certificates, and a directory with some."""


def trusted_authorities() -> "SSLContext":
    """Return the authorities that ``$SSL_CERT_FILE`` or ``$SSL_CERT_DIR`` names, else those of the system.

    Raises:
        BadInput: The file that is named cannot be read.
    """
    named = os.environ.get(_FILE)
    try:
        return _loaded(named, os.environ.get(_DIRECTORY))
    except OSError as error:
        if not named:
            raise
        raise BadInput(
            f"The certificates that {_FILE} names cannot be read ({named!r}: {error}): set it to a file of "
            "certificates, or unset it."
        ) from error


@cache
def _loaded(file: str | None, directory: str | None) -> "SSLContext":
    """Load the authorities once for each value of the variables, since that takes 20 ms."""
    import httpx2

    return httpx2.create_ssl_context()
