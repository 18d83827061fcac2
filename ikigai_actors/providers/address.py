"""Checks of the address (URL) of a service. Pure."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from ikigai_actors.errors import ProviderError

UNAVAILABLE = frozenset({401, 402, 403, 408, 429})
"""The statuses below 500 by which a service refuses to serve, whatever the request says."""

_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


def is_address(url: str) -> bool:
    """Return whether a text can be the URL of a service: http or https, with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def check_address(url: str, setting: str) -> None:
    """Raise `ProviderError` if a text is no URL of a service; ``setting`` names where it was configured."""
    if not is_address(url):
        raise ProviderError(f"The address in {setting} is no URL: expected https://… or http://…, got {url!r}.")


def suspects(url: str, environ: Mapping[str, str], adds_version: bool = True) -> str:
    """Return sentences on further causes to check if an address does not answer; empty if none is known.

    Args:
        environ: the environment variables.
        adds_version: whether the client adds ``/v1`` to the address.
    """
    suspect = ""
    if adds_version and url.rstrip("/").endswith("/v1"):
        suspect += " The address ends in /v1, which is added to it: leave that out."
    if proxies := [name for name in _PROXIES if environ.get(name) or environ.get(name.lower())]:
        suspect += f" A proxy is set ({', '.join(proxies)}): check it, or name the host in NO_PROXY."
    return suspect
