"""Accounts at remote MCP servers, which people connect by pages of the API.

    POST /q/LINK, connect       begins a flow: a page with the way to the authorization server, and a cookie
    GET /oauth/callback         ends the flow, when that server sends the person back: stores the account, and answers
    GET /oauth/client.json      the description of this client; its URL is the client's id

The cookie binds a flow to the browser in which a person has confirmed the flow. Without the cookie, the owner of a link
could send another person to the authorization server, and get the account of that person. Any process of the API can
finish a flow that another process has begun.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.system.guarded_http import allowed_addresses

if TYPE_CHECKING:
    from ikigai_actors.system.accounts import Accounts

_COOKIE = "ikigai-flow-"


class BegunFlow(NamedTuple):
    """The address to which a person goes to connect an account, and a cookie."""

    url: str
    """The address to which the person goes."""
    cookie: str
    """The header ``Set-Cookie``."""


class AccountFlows:
    """The flows by which people connect accounts. Call the coroutines on the event loop of the API."""

    def __init__(self, access: Access, keys: Sequence[bytes], url: str, allow_private: Iterable[str] | None) -> None:
        self._access, self._keys, self._url = access, tuple(keys), url
        self._allowed = allowed_addresses(allow_private)
        self._accounts: Accounts | None = None

    def document(self) -> dict[str, Any]:
        """Return the description of this client. Raises `BadInput` if the address of the API is not known."""
        from ikigai_actors.tools.mcp.oauth import client_document

        self._check_url()
        return client_document(self._url)

    async def begin(self, question: str, connect: Mapping[str, Any]) -> BegunFlow:
        """Begin a flow for a question that asks for an account. Raises `BadInput`."""
        from ikigai_actors.tools.mcp.oauth import callback_url

        self._check_url()
        url = await self._of_accounts().begin(question, connect, self._url)
        state = parse_qs(urlsplit(url).query)["state"][0]
        path = urlsplit(callback_url(self._url)).path
        secure = "; Secure" if self._url.startswith("https://") else ""
        return BegunFlow(url, f"{_name(state)}={state}; Path={path}; Max-Age=600; HttpOnly; SameSite=Lax{secure}")

    async def finish(self, query: Mapping[str, str], cookies: str) -> str:
        """Finish the flow of a person who comes back; return a text for the person.

        Raises `BadInput`; then nothing is stored.
        """
        state = query.get("state", "")
        if not state or f"{_name(state)}={state}" not in [cookie.strip() for cookie in cookies.split(";")]:
            raise BadInput(
                "This browser has not begun this: open the link of the question here, and go on from there. Nothing "
                "was kept."
            )
        connected = await self._of_accounts().finish(
            state, query.get("code", ""), query.get("iss", ""), query.get("error", "")
        )
        return f"The account of {connected.subject} at {connected.server} is connected, and the agent goes on."

    def _of_accounts(self) -> "Accounts":
        from ikigai_actors.system.accounts import Accounts

        if self._accounts is None:
            client = self._access.client
            self._accounts = Accounts(client.read, client.write, client.now_ms, self._keys, self._allowed)
        return self._accounts

    def _check_url(self) -> None:
        if not self._url.startswith(("https://", "http://")):
            raise BadInput("Accounts need the address of this API as people reach it: ikigai api --url https://….")


def _name(state: str) -> str:
    return _COOKIE + hashlib.sha256(state.encode(errors="replace")).hexdigest()[:12]
