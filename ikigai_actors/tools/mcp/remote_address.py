"""The address of a remote MCP server: its URL, its headers, its name. Pure.

A header may hold references, ``Bearer env:TOKEN``: each connection looks them up, so no secret is kept here.
"""

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from ikigai_actors.arguments import check_type, check_variables, shown
from ikigai_actors.errors import BadInput

_REFERENCE = re.compile(r"\b(?:env|file|keyring):[^\s,;\"]+")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN = {"accept", "content-type", "content-length", "host", "mcp-session-id", "mcp-protocol-version", "connection"}
"""Headers that the protocol itself sets."""
_USUAL = {"mcp", "api", "www", "com", "org", "net", "io", "dev", "app", "ai", "co"}
"""Parts of a host's name that say nothing about the server."""


def is_url(command: object) -> bool:
    """Return whether a server's ``command`` is a URL, rather than a program."""
    return isinstance(command, str) and re.match(r"https?://", command.strip(), re.IGNORECASE) is not None


def check_url(text: str) -> str:
    """Return the URL of a server after checking it. Raises `BadInput`."""
    url = text.strip()
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadInput(f"Expected the URL of an MCP server; got {shown(url)}: {error}.") from None
    if not parts.hostname or port == 0 or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise BadInput(f"Expected the URL of an MCP server, such as https://mcp.example.com/mcp; got {shown(url)}.")
    if parts.username is not None or parts.password is not None:
        raise BadInput("A URL of an MCP server takes no user and password: give them in headers.")
    if parts.fragment:
        raise BadInput(f"A URL of an MCP server takes no fragment (#); got {shown(url)}.")
    return url


def check_remote_headers(value: object) -> dict[str, str]:
    """Return the headers for a server after checking them. Raises `BadInput`."""
    headers = check_variables(value, "headers")
    for name, text in headers.items():
        if _HEADER.fullmatch(name) is None or name.lower() in _OWN:
            raise BadInput(f"{name!r} cannot be a header for an MCP server; leave it out.")
        if re.search(r"[\r\n\0]", text):
            raise BadInput(f"The header {name} has a line break; take it out.")
    return headers


def check_account(label: object) -> str | None:
    """Return the label of agents that names the account, after a check; None for None. Raises `BadInput`."""
    if label is None:
        return None
    key = check_type(label, str, "account", "the key of a label, as 'user'")
    if not key.strip() or "=" in key:
        raise BadInput(f"Expected account to be the key of a label, as 'user'; got {shown(label)}.")
    return key


def check_remote_client(client_id: object, client_secret: object) -> dict[str, str]:
    """Return the client that was registered by hand, as data for a question; empty without one.

    Raises `BadInput` for a secret without an id, for example.
    """
    if client_id is not None:
        check_type(client_id, str, "client_id", "text, or None")
    if client_secret is not None:
        check_type(client_secret, str, "client_secret", "a reference, as env:NAME, or None")
    if client_id is None:
        if client_secret is not None:
            raise BadInput(f"Expected client_id beside client_secret; got {shown(client_id)}.")
        return {}
    known, secret = {"client_id": str(client_id)}, client_secret
    if secret is None:
        return known
    if _REFERENCE.fullmatch(str(secret)) is None:
        raise BadInput("Expected client_secret to be a reference, as env:NAME: the database keeps it; got other text.")
    return {**known, "client_secret": str(secret)}


def looked_up(headers: Mapping[str, str], secret: Callable[[str], str]) -> dict[str, str]:
    """Return headers with their references replaced by the secrets.

    Args:
        headers: the headers as configured.
        secret: returns the secret of a reference; empty if there is none.

    Raises:
        BadInput: a reference has no secret. The text names only the reference.
    """

    def filled(match: re.Match[str]) -> str:
        if not (text := secret(match[0])) or re.search(r"[\r\n\0]", text):
            raise BadInput(f"there is no secret {match[0]} here, or it has a line break: set it")
        return text

    return {name: _REFERENCE.sub(filled, text) for name, text in headers.items()}


def name_of_url(url: str) -> str:
    """Return a name for a server, made from the host in its URL."""
    host = urlsplit(url).hostname or "mcp"
    if re.fullmatch(r"[\d.:a-f]+", host):
        return host
    return next((label for label in host.split(".") if label not in _USUAL), host)
