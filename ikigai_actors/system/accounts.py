"""Accounts at remote MCP servers: a person gives a credential once, and hosts renew it.

    begin     reads the metadata of the server and its authorization server, registers the client, and stores the PKCE
              verifier, sealed, under the SHA-256 of ``state``; returns the URL to which the person goes
    finish    deletes the stored verifier, checks which server has sent the person back, redeems the code, and seals the
              tokens; answers all questions that ask for this account
    token     returns the credential for a call; one of the hosts renews a credential shortly before its end
    remove    deletes a credential, and revokes it

Nothing is in memory between ``begin`` and ``finish``, so another process can finish after a killed one. A crash before
the tokens are committed leaves the question open, and the person begins again.

Servers may name any address, so each connection is checked (`AllowedAddresses`).
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from ikigai_actors.actors.threads import in_thread
from ikigai_actors.errors import BadInput
from ikigai_actors.records.accounts import (
    AccountRow,
    BeginFlow,
    ClaimRenewal,
    ConnectAccount,
    EndRenewal,
    FreeRenewal,
    KeepAccount,
    RemoveAccount,
    SealAgain,
    TakeFlow,
    account_of,
    account_place,
    every_account,
    flow_place,
    questions_for_account,
)
from ikigai_actors.records.outbox.addresses import AllowedAddresses
from ikigai_actors.records.questions.questions import QuestionRow
from ikigai_actors.records.sealed import SealedBox
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.guarded_http import GuardedAnswer, guarded_request
from ikigai_actors.system.secrets import referred_secret
from ikigai_actors.tools.mcp.oauth import (
    Challenge,
    FormRequest,
    Issuer,
    OAuthClient,
    Tokens,
    authorization_url,
    callback_url,
    challenge_in,
    check_iss,
    client_document_url,
    code_request,
    error_in,
    issuer_in,
    issuer_urls,
    new_registration,
    new_verifier,
    oauth_tokens_in,
    registered_in,
    renewal_request,
    resource_in,
    resource_urls,
    revocation_request,
    union_of,
)

T = TypeVar("T")

EARLY_MS = 60 * 1000
"""Milliseconds before the end of a credential from which on it is renewed."""

LOOKS_AT_RENEWAL = 0.2
"""Seconds between two looks at a renewal by somebody else."""

_PASSING_CODES = ("temporarily_unavailable", "server_error", "slow_down")
"""The codes of OAuth that say nothing about a credential."""

_PROBE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class ConnectedAccount(NamedTuple):
    """An account at a remote server that a person has just connected."""

    question: str
    """The id of the question that it answers."""
    server: str
    subject: str


class RenewalUnclear(Exception):
    """Raised when an authorization server has neither renewed an account nor refused it for good."""


class Accounts:
    """The accounts of a database. Its coroutines run on any event loop, and reach the database on threads."""

    def __init__(
        self,
        read: Callable[[Callable[[Transaction], Any]], Any],
        write: Callable[[Unit], Any],
        now_ms: Callable[[], int],
        keys: tuple[bytes, ...],
        allowed: AllowedAddresses,
    ) -> None:
        """Make the accounts of a database. Raises `BadInput` without a key, or without the extra.

        Args:
            read: reads from the database; blocks.
            write: commits a unit and returns its answer; blocks.
            now_ms: the time.
            keys: the operator's keys; the first one seals.
            allowed: the addresses that may be reached.
        """
        self._read, self._write, self._now_ms, self._allowed = read, write, now_ms, allowed
        self._box = SealedBox(keys)

    async def begin(self, question: str, connect: Mapping[str, Any], url: str) -> str:
        """Begin to connect an account; return the address at which the person gives consent.

        Args:
            question: the id of the question that the account answers.
            connect: the account, as the question names it.
            url: the address of the API, as people reach it.

        Raises:
            BadInput: the server cannot be understood, or names addresses that may not be reached.
        """
        server, subject = str(connect["server"]), str(connect["subject"])
        challenge = await self._challenge(server)
        resource, named, scopes = await self._resource(server, challenge)
        issuer = await self._issuer(named)
        scope = union_of(str(connect.get("scope") or ""), challenge.scope or " ".join(scopes))
        client = await self._client(issuer, connect, url, scope)
        state, verifier, redirect = secrets.token_urlsafe(32), new_verifier(), callback_url(url)
        kept = {
            "server": server, "subject": subject, "resource": resource, "scope": scope, "verifier": verifier,
            "redirect": redirect, "client": client._asdict(), "issuer": issuer._asdict(),
        }  # fmt: skip
        hashed = _sha256(state)
        sealed = self._box.seal(flow_place(hashed), json.dumps(kept).encode())
        await self._writes(BeginFlow(hashed, question, self._now_ms(), sealed))
        return authorization_url(
            issuer, client, redirect=redirect, state=state, verifier=verifier, resource=resource, scope=scope
        )

    async def finish(self, state: str, code: str, iss: str, error: str = "") -> ConnectedAccount:
        """Finish connecting an account, after the person has come back from the authorization server."""
        hashed = _sha256(state)
        flow = await self._writes(TakeFlow(hashed, self._now_ms()))
        if flow is None:
            raise BadInput(
                "This answer was used before, or came after ten minutes: open the link of the question again."
            )
        question, sealed = flow
        kept = json.loads(self._box.opened(flow_place(hashed), sealed))
        issuer, client = _issuer_of(kept["issuer"]), OAuthClient(**kept["client"])
        check_iss(iss, issuer.issuer, always=issuer.sends_iss)
        if error or not code:
            why = error_in(json.dumps({"error": error}).encode()) or "no code"
            raise BadInput(f"The authorization server gave no account ({why}).")
        request = code_request(
            self._with_secret(client), code=code, verifier=kept["verifier"], redirect=kept["redirect"],
            resource=kept["resource"],
        )  # fmt: skip
        answer = await self._posted(issuer.token, request)
        if answer.status != 200:
            raise BadInput(_refusal("did not take the code", answer))
        tokens = oauth_tokens_in(answer.body)
        row = self._sealed(kept, tokens, scope=tokens.scope or kept["scope"])
        keep = KeepAccount(kept["server"], kept["subject"], issuer.issuer, *row)
        asked: list[QuestionRow] = await self._reads(lambda tx: questions_for_account(tx, keep, question))
        await self._writes(ConnectAccount(keep, tuple(asked), self._now_ms()))
        return ConnectedAccount(question, kept["server"], kept["subject"])

    async def token(self, server: str, subject: str, refused: str = "") -> str | None:
        """Return the access token of a subject at a server; None if a person must connect an account first.

        Args:
            server: the server, by URL.
            subject: a label and its value.
            refused: a token that the server has just refused: it is renewed at once.

        Raises:
            RenewalUnclear: the authorization server has not renewed it, and may do so later.
        """
        while True:
            row: AccountRow | None = await self._reads(lambda tx: account_of(tx, server, subject))
            if row is None:
                return None
            kept = self._opened(row)
            tokens = Tokens(*kept["tokens"])
            fresh = row.expires_at is None or row.expires_at - EARLY_MS > self._now_ms()
            if fresh and tokens.access != refused:
                return tokens.access
            if not tokens.refresh:
                ends = row.expires_at is not None and row.expires_at <= self._now_ms()
                return None if ends or tokens.access == refused else tokens.access
            if await self._writes(ClaimRenewal(server, subject, row.version, self._now_ms())):
                return await asyncio.shield(self._renewed(row, kept, tokens))
            await asyncio.sleep(LOOKS_AT_RENEWAL)

    async def scope(self, server: str, subject: str) -> str:
        """Return the scope of an account; empty without an account."""
        row: AccountRow | None = await self._reads(lambda tx: account_of(tx, server, subject))
        return "" if row is None else row.scope

    async def _renewed(self, row: AccountRow, kept: dict[str, Any], tokens: Tokens) -> str | None:
        """Renew the tokens of an account, whose version this process has claimed; return the new access token.

        None if the server refuses for good. Raises `RenewalUnclear`; then the next call tries again.
        """
        client = OAuthClient(**kept["client"])
        try:
            request = renewal_request(self._with_secret(client), refresh=tokens.refresh, resource=kept["resource"])
            answer = await self._posted(_issuer_of(kept["issuer"]).token, request)
            if _takes_it_no_more(answer, client):
                await self._writes(EndRenewal(row.server, row.subject, row.version, None))
                return None
            if answer.status != 200:
                raise BadInput(_refusal("did not renew the account", answer))
            after = oauth_tokens_in(answer.body, tokens)
        except BadInput as error:
            await self._writes(FreeRenewal(row.server, row.subject, row.version))
            raise RenewalUnclear(str(error)) from None
        scope, expires_at, sealed = self._sealed(kept, after, scope=after.scope or row.scope)
        if not await self._writes(EndRenewal(row.server, row.subject, row.version, sealed, expires_at, scope)):
            await self._revoke(kept, after)  # the account was removed meanwhile, or connected anew
            return await self.token(row.server, row.subject)
        return after.access

    async def remove(self, server: str, subject: str) -> tuple[bool, str]:
        """Remove an account and revoke its tokens.

        Return whether the account existed, and the reason why its tokens could not be revoked; empty if they were.
        """
        row: AccountRow | None = await self._writes(RemoveAccount(server, subject))
        if row is None:
            return False, ""
        kept = self._opened(row)
        return True, await self._revoke(kept, Tokens(*kept["tokens"]))

    async def _revoke(self, kept: Mapping[str, Any], tokens: Tokens) -> str:
        """Revoke tokens; return the reason why the server did not, or an empty text."""
        issuer = _issuer_of(kept["issuer"])
        if not issuer.revocation:
            return "the authorization server takes no revocations"
        hints = [(tokens.refresh, "refresh_token"), (tokens.access, "access_token")]
        try:
            client = self._with_secret(OAuthClient(**kept["client"]))
            for token, hint in (pair for pair in hints if pair[0]):
                answer = await self._posted(issuer.revocation, revocation_request(client, token=token, hint=hint))
                if answer.status != 200:
                    return _refusal("did not revoke it", answer)
        except BadInput as error:
            return str(error)
        return ""

    def rekey(self) -> int:
        """Seal every account by the operator's first key; return how many were sealed by another key. Blocks.

        An account that is renewed meanwhile is read and sealed again.
        """
        done: list[bool] = [
            self._write(self._sealed_again(row))
            for row in self._read(lambda tx: list(every_account(tx)))
            if not self._box.is_current(row.sealed)
        ]
        return sum(done) + (0 if all(done) else self.rekey())

    def _sealed_again(self, row: AccountRow) -> SealAgain:
        place = account_place(row.server, row.subject)
        return SealAgain(
            row.server, row.subject, row.version, self._box.seal(place, self._box.opened(place, row.sealed))
        )

    # Parts

    async def _challenge(self, server: str) -> Challenge:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        answer = await guarded_request(self._allowed, "POST", server, headers, json.dumps(_PROBE).encode())
        return challenge_in(answer.headers.get("www-authenticate", ""))

    async def _resource(self, server: str, challenge: Challenge) -> tuple[str, str, list[str]]:
        for url in resource_urls(server, challenge):
            answer = await guarded_request(self._allowed, "GET", url, {"Accept": "application/json"})
            if answer.status == 200:
                return resource_in(_json(answer.body), server)
        raise BadInput("The server does not say who issues accounts for it, so none can be connected.")

    async def _issuer(self, issuer: str) -> Issuer:
        for url in issuer_urls(issuer):
            answer = await guarded_request(self._allowed, "GET", url, {"Accept": "application/json"})
            if answer.status == 200:
                return issuer_in(_json(answer.body), issuer)
        raise BadInput("The server's authorization server does not describe itself.")

    async def _client(self, issuer: Issuer, connect: Mapping[str, Any], url: str, scope: str) -> OAuthClient:
        """Return the OAuth client: configured, described by our metadata document, or registered now."""
        if client_id := str(connect.get("client_id") or ""):
            secret = str(connect.get("client_secret") or "")
            post = "client_secret_post" in issuer.methods and "client_secret_basic" not in issuer.methods
            method = "none" if not secret else "client_secret_post" if post else "client_secret_basic"
            return OAuthClient(client_id, secret, method, is_referred=bool(secret))
        if issuer.takes_documents and url.startswith("https://"):
            return OAuthClient(client_document_url(url))
        if not issuer.registration:
            raise BadInput("The authorization server registers no clients: register one there, and give its client_id.")
        body = json.dumps(new_registration(url, scope)).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        answer = await guarded_request(self._allowed, "POST", issuer.registration, headers, body)
        if answer.status not in (200, 201):
            raise BadInput(_refusal("did not register this client", answer))
        return registered_in(_json(answer.body))

    def _with_secret(self, client: OAuthClient) -> OAuthClient:
        """Return the client with its secret, which is looked up if it is a reference. Raises `BadInput`."""
        if not client.is_referred:
            return client
        if not (secret := referred_secret(client.secret)):
            raise BadInput(f"The secret of the client is not there: {client.secret}.")
        return client._replace(secret=secret, is_referred=False)

    async def _posted(self, url: str, request: FormRequest) -> GuardedAnswer:
        headers = {"Accept": "application/json", **request.headers}
        return await guarded_request(self._allowed, "POST", url, headers, request.fields)

    def _sealed(self, kept: Mapping[str, Any], tokens: Tokens, scope: str) -> tuple[str, int | None, bytes]:
        whole = {name: kept[name] for name in ("client", "issuer", "resource", "server", "subject")}
        expires_at = None if tokens.expires_in is None else self._now_ms() + 1000 * tokens.expires_in
        place = account_place(kept["server"], kept["subject"])
        return scope, expires_at, self._box.seal(place, json.dumps({**whole, "tokens": tokens}).encode())

    def _opened(self, row: AccountRow) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(self._box.opened(account_place(row.server, row.subject), row.sealed))
        return fields

    async def _reads(self, work: Callable[[Transaction], Any]) -> Any:
        return await in_thread(lambda: self._read(work), "ikigai-accounts")

    async def _writes(self, unit: Unit) -> Any:
        return await in_thread(lambda: self._write(unit), "ikigai-accounts")


def _issuer_of(kept: Mapping[str, Any]) -> Issuer:
    return Issuer(**{**kept, "methods": tuple(kept["methods"])})


def _takes_it_no_more(answer: GuardedAnswer, client: OAuthClient) -> bool:
    """Return whether the server has refused a renewal for good, so that somebody must connect the account again.

    A temporary error does not count, nor a wrong secret of the operator. An OAuth error code counts even with status
    200.
    """
    code = error_in(answer.body)
    if answer.status >= 500 or answer.status == 429 or code in _PASSING_CODES:
        return False
    if code == "invalid_client" and client.is_referred:
        return False  # the operator's secret is wrong
    return bool(code) or answer.status in (400, 401)


def _refusal(what: str, answer: GuardedAnswer) -> str:
    """Describe a refusal by its status and its OAuth error code. Nothing else of the answer is shown."""
    code = error_in(answer.body)
    return f"The authorization server {what}: {answer.status}{f' {code}' if code else ''}."


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
