"""A remote MCP server with accounts on loopback: the official SDK's server and authorization server, and a browser."""

import re
import secrets
import time
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from ikigai_actors.certificates import trusted_authorities
from tests.kit.remote_mcp import READS, RemoteMcp

CANARY = "canary-"
"""With it every secret of the server begins: no output and no byte of a database has it."""


class Issuing(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Everybody who comes is the person of the browser. A refresh token is good once; a second use ends its account."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.person = "anna"
        self.lives = 3600
        """Seconds for which an access token is good."""
        self.iss: str | None = url
        """The issuer that the redirection names."""
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.used: set[str] = set()
        self.presented: list[str] = []
        """The refresh tokens that were presented, good or not."""
        self.renewals = 0
        self.redeemed = 0
        self.revoked: list[str] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=CANARY + secrets.token_hex(16), scopes=params.scopes or ["notes"], expires_at=time.time() + 60,
            client_id=client.client_id, code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True, resource=params.resource, subject=self.person,
        )  # fmt: skip
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state, iss=self.iss)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        self.redeemed += 1
        return self._issue(client.client_id, authorization_code.scopes, authorization_code)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        self.presented.append(refresh_token)
        if refresh_token in self.used:
            self.refresh.clear()
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.used.add(refresh_token.token)
        self.renewals += 1
        return self._issue(client.client_id, scopes, refresh_token)

    async def load_access_token(self, token: str) -> AccessToken | None:
        known = self.access.get(token)
        return known if known is not None and (known.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoked.append(token.token)
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def _issue(self, client: str, scopes: list[str], of: AuthorizationCode | RefreshToken) -> OAuthToken:
        access, refresh = CANARY + secrets.token_hex(16), CANARY + secrets.token_hex(16)
        about: dict[str, Any] = {"client_id": client, "scopes": scopes, "resource": of.resource, "subject": of.subject}
        self.access[access] = AccessToken(token=access, expires_at=int(time.time()) + self.lives, **about)
        self.refresh[refresh] = RefreshToken(token=refresh, **about)
        return OAuthToken(access_token=access, expires_in=self.lives, scope=" ".join(scopes), refresh_token=refresh)


class AccountMcp(RemoteMcp):
    """The server. Its tool ``whose`` says whose account calls it."""

    def __init__(self) -> None:
        super().__init__(self._server_with_accounts)
        self.issuing = Issuing(self.url.removesuffix("/mcp"))
        self.needs: str = ""
        """The scope without which the door lets no call of a tool in."""

    def _challenge(self, token: str) -> str:
        """The challenge of a call whose token lacks a right; empty for none."""
        known = self.issuing.access.get(token)
        if not self.needs or known is None or self.needs in known.scopes:
            return ""
        return f'Bearer error="insufficient_scope", scope="{self.needs}"'

    def _server_with_accounts(self) -> MCPServer:
        auth = AuthSettings(
            issuer_url=self.issuing.url,  # type: ignore[arg-type]  # a URL that is made first gets a slash
            resource_server_url=self.url,  # type: ignore[arg-type]
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=["notes", "more"], default_scopes=["notes", "more"]
            ),
            revocation_options=RevocationOptions(enabled=True),
            required_scopes=["notes"],
            validate_token_resource=True,
        )
        server = MCPServer("accounts-for-tests", auth_server_provider=self.issuing, auth=auth)

        self.challenge_of = self._challenge

        @server.tool(annotations=READS)
        def whose() -> str:
            """Say whose account this is."""
            token = get_access_token()
            return f"{token.subject} may {' '.join(token.scopes)}" if token else "nobody"

        return server


class Browser:
    """A person's browser: it keeps cookies, and follows links and redirections."""

    def __init__(self, app: Any, url: str) -> None:
        """Reach an application of ASGI at its address, and anything else on loopback.

        In place of the application its address on loopback may be given, as a proxy has it.
        """
        self._app, self._url = app, url
        self.cookies: dict[str, str] = {}
        self.seen: list[str] = []
        """The text of every page."""

    async def get(self, url: str) -> httpx2.Response:
        return await self._ask("GET", url)

    async def post(self, url: str, fields: dict[str, str]) -> httpx2.Response:
        return await self._ask("POST", url, fields)

    async def agree(self, link: str, decide: str = "connect") -> httpx2.Response:
        """Look at a link's page, and press a button."""
        page = (await self.get(link)).text
        digest = re.search(r"name='digest' value='(\w+)'", page)
        return await self.post(link, {"decide": decide, "digest": digest[1] if digest else ""})

    async def way_back(self, link: str) -> str:
        """Go from a link to the authorization server; return the address to which that sends the person back."""
        page = (await self.agree(link)).text
        there = re.search(r"href='([^']+)'", page)
        assert there is not None, page
        answer = await self.get(unescape(there[1]))
        assert answer.status_code == 302, answer.text
        return str(answer.headers["location"])

    async def connect(self, link: str) -> httpx2.Response:
        """All of it."""
        return await self.get(await self.way_back(link))

    async def _ask(self, method: str, url: str, fields: dict[str, str] | None = None) -> httpx2.Response:
        own = url.startswith(self._url)
        if own and isinstance(self._app, str):
            url = url.replace(self._url, self._app)
        in_memory = own and not isinstance(self._app, str)
        transport = (
            httpx2.ASGITransport(app=self._app)
            if in_memory
            else httpx2.AsyncHTTPTransport(verify=trusted_authorities())
        )
        cookie = "; ".join(f"{name}={text}" for name, text in self.cookies.items())
        async with httpx2.AsyncClient(transport=transport, timeout=60) as client:
            answer = await client.request(method, url, data=fields, headers={"cookie": cookie} if own else {})
        for text in answer.headers.get_list("set-cookie"):
            name, _, value = text.partition(";")[0].partition("=")
            self.cookies[name] = value
        self.seen.append(answer.text)
        return answer


def query_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))
