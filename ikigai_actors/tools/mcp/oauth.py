"""OAuth 2.1 as MCP requires it of a client: makes the requests, and checks the answers. Pure.

    challenge_in(header)                the fields of a 401's header
    resource_urls, resource_in          metadata of the protected resource: its authorization servers
    issuer_urls, issuer_in              metadata of the authorization server
    new_registration                    the registration of the client, if the server requires one
    authorization_url                   the URL to which a person goes: with PKCE S256, the resource, a state
    check_iss                           checks which server has sent the person back, before the code is redeemed
    code_request, renewal_request       requests to the token endpoint; `revocation_request` to that for revocations
    oauth_tokens_in                           the tokens of an answer

Of the texts that a server sends, errors quote only the codes of OAuth.
"""

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from ikigai_actors.errors import BadInput

_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class Challenge(NamedTuple):
    """The contents of the header ``WWW-Authenticate`` of an answer."""

    resource_metadata: str = ""
    scope: str = ""
    error: str = ""


class OAuthClient(NamedTuple):
    """This program as a client of an authorization server, as it was registered there."""

    id: str
    secret: str = ""
    """Empty for a public client."""
    method: str = "none"
    """The method by which the client authenticates: ``none``, ``client_secret_post`` or ``client_secret_basic``."""
    is_referred: bool = False
    """Whether the secret is a reference, ``env:NAME``, as a person has configured it. A server gives none."""


class Issuer(NamedTuple):
    """An authorization server: the addresses and methods that its metadata name."""

    issuer: str
    authorization: str
    token: str
    registration: str = ""
    revocation: str = ""
    takes_documents: bool = False
    """Whether a client may be the URL of a document."""
    sends_iss: bool = False
    """Whether the server always names itself when it sends a person back."""
    methods: tuple[str, ...] = ("client_secret_basic",)


class Tokens(NamedTuple):
    """The access and refresh tokens of an account."""

    access: str
    refresh: str
    expires_in: int | None
    scope: str


def challenge_in(header: str) -> Challenge:
    """Return the challenge in a header; an empty challenge if there is none."""

    def field(name: str) -> str:
        match = re.search(rf'\b{name}\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))', header)
        return (match[1] or match[2] or "")[:2000] if match else ""

    return Challenge(field("resource_metadata"), field("scope"), field("error"))


def union_of(former: str, more: str) -> str:
    """Return the scopes of two texts as one text: each scope once, those of ``former`` first."""
    return " ".join(dict.fromkeys([*former.split(), *more.split()]))


def resource_urls(server: str, challenge: Challenge) -> list[str]:
    """Return the addresses at which the metadata of a server may be, in the order to try them."""
    parts = urlsplit(server)
    root = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource"
    path = parts.path.rstrip("/")
    return list(dict.fromkeys(filter(None, [challenge.resource_metadata, f"{root}{path}", root])))


def resource_in(metadata: object, server: str) -> tuple[str, str, list[str]]:
    """Return the resource, issuer and scopes of a server. Raises `BadInput` for the metadata of another server."""
    if not isinstance(metadata, Mapping):
        raise BadInput("The server's description of itself is no JSON object.")
    resource, issuers = metadata.get("resource"), metadata.get("authorization_servers")
    if not isinstance(resource, str) or not _is_web_address(resource) or not _is_part(server, resource):
        raise BadInput("The server's description is about another resource than this server.")
    issuer = issuers[0] if isinstance(issuers, list) and issuers else None
    if not isinstance(issuer, str) or not _is_web_address(issuer):
        raise BadInput("The server's description names no authorization server.")
    scopes = metadata.get("scopes_supported")
    offered = [scope for scope in scopes if isinstance(scope, str)] if isinstance(scopes, list) else []
    return resource, issuer, offered


def _is_part(server: str, resource: str) -> bool:
    own, whole = urlsplit(server), urlsplit(resource)
    if (own.scheme, own.netloc.lower(), own.query) != (whole.scheme, whole.netloc.lower(), whole.query or own.query):
        return False
    below = whole.path.rstrip("/")
    return own.path.rstrip("/") == below or own.path.startswith(f"{below}/")


def issuer_urls(issuer: str) -> list[str]:
    """Return the addresses at which the metadata of an issuer may be, in the order to try them."""
    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    own = [f"{root}/.well-known/oauth-authorization-server{path}", f"{root}/.well-known/openid-configuration{path}"]
    return [*own, f"{root}{path}/.well-known/openid-configuration"] if path else own


def issuer_in(metadata: object, issuer: str) -> Issuer:
    """Return the authorization server that metadata describe. Raises `BadInput` if it cannot be used."""
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("issuer"), str):
        raise BadInput("The authorization server's description is no JSON object with an issuer.")
    if metadata["issuer"].rstrip("/") != issuer.rstrip("/"):
        raise BadInput("The authorization server's description is of another issuer.")
    if "S256" not in (metadata.get("code_challenge_methods_supported") or ()):
        raise BadInput("The authorization server does not say that it takes PKCE with S256, so it is not used.")
    text = {name: value for name, value in metadata.items() if isinstance(value, str)}
    if not text.get("authorization_endpoint") or not text.get("token_endpoint"):
        raise BadInput("The authorization server's description lacks its endpoints.")
    if not _is_web_address(text["authorization_endpoint"]):  # a browser goes there: no javascript:
        raise BadInput("The authorization server's page is at no address of http or https.")
    methods = metadata.get("token_endpoint_auth_methods_supported")
    return Issuer(
        issuer=metadata["issuer"],
        authorization=text["authorization_endpoint"],
        token=text["token_endpoint"],
        registration=text.get("registration_endpoint", ""),
        revocation=text.get("revocation_endpoint", ""),
        takes_documents=metadata.get("client_id_metadata_document_supported") is True,
        sends_iss=metadata.get("authorization_response_iss_parameter_supported") is True,
        methods=tuple(methods) if isinstance(methods, list) else ("client_secret_basic",),
    )


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def client_document(url: str) -> dict[str, Any]:
    """Return the description of this client, whose id is the address of the description."""
    return {"client_id": client_document_url(url), **new_registration(url)}


def client_document_url(url: str) -> str:
    """Return the address of the description of this client, from the address of the API."""
    return f"{url.rstrip('/')}/oauth/client.json"


def callback_url(url: str) -> str:
    """Return the address to which an authorization server sends people back, from the address of the API."""
    return f"{url.rstrip('/')}/oauth/callback"


def new_registration(url: str, scope: str = "") -> dict[str, Any]:
    """Return the description of this client for an authorization server."""
    own: dict[str, Any] = {
        "client_name": "ikigai-actors",
        "redirect_uris": [callback_url(url)],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    }
    return {**own, "scope": scope} if scope else own


def registered_in(answer: object) -> OAuthClient:
    """Return the client that an authorization server has registered. Raises `BadInput`."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("client_id"), str):
        raise BadInput("The authorization server has registered no client.")
    secret = answer.get("client_secret")
    method = answer.get("token_endpoint_auth_method") or ("client_secret_basic" if secret else "none")
    return OAuthClient(answer["client_id"], secret if isinstance(secret, str) else "", str(method))


def new_verifier() -> str:
    """Return a new verifier of PKCE. The authorization server gets it only when the code is redeemed."""
    return secrets.token_urlsafe(48)


def authorization_url(
    issuer: Issuer, client: OAuthClient, *, redirect: str, state: str, verifier: str, resource: str, scope: str
) -> str:
    """Return the address at which a person grants this client access."""
    proof = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    asked = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect,
        "state": state,
        "code_challenge": proof,
        "code_challenge_method": "S256",
        "resource": resource,
        **({"scope": scope} if scope else {}),
    }
    return f"{issuer.authorization}{'&' if '?' in issuer.authorization else '?'}{urlencode(asked)}"


def check_iss(iss: str, issuer: str, *, always: bool) -> None:
    """Raise `BadInput` if another issuer has sent a person back, or if ``iss`` is missing though ``always`` is set."""
    if iss != issuer and (iss or always):
        raise BadInput("Another authorization server has sent you here than the one that was asked: nothing was kept.")


class FormRequest(NamedTuple):
    """A request to an authorization server, with a form as its body."""

    fields: dict[str, str]
    headers: dict[str, str]


def code_request(client: OAuthClient, *, code: str, verifier: str, redirect: str, resource: str) -> FormRequest:
    """Return the request that redeems a code."""
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
    return _by(client, {**fields, "resource": resource})


def renewal_request(client: OAuthClient, *, refresh: str, resource: str) -> FormRequest:
    """Return the request that renews a credential."""
    return _by(client, {"grant_type": "refresh_token", "refresh_token": refresh, "resource": resource})


def revocation_request(client: OAuthClient, *, token: str, hint: str) -> FormRequest:
    """Return the request that revokes a token (RFC 7009)."""
    empty = {} if client.secret else {"client_secret": ""}  # the same as none; the SDK's server wants the field
    return _by(client, {"token": token, "token_type_hint": hint, **empty})


def _by(client: OAuthClient, fields: dict[str, str]) -> FormRequest:
    """Return a request with these fields, authenticated in the way that was registered for the client.

    Some servers also need the client's id as a field.
    """
    fields = {**fields, "client_id": client.id}
    if client.secret and client.method == "client_secret_basic":
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        return FormRequest(fields, {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"})
    secret = {"client_secret": client.secret} if client.secret else {}
    return FormRequest({**fields, **secret}, {})


def oauth_tokens_in(body: bytes, former: Tokens | None = None) -> Tokens:
    """Return the tokens in an answer; a token that is left out is taken from ``former``. Raises `BadInput`."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    access = answer.get("access_token") if isinstance(answer, Mapping) else None
    if not isinstance(access, str) or not access or not re.fullmatch(r"[\x21-\x7e]+", access):
        raise BadInput("The authorization server's answer has no token.")
    if str(answer.get("token_type", "")).lower() != "bearer":
        raise BadInput("The authorization server gives tokens of another type than Bearer.")
    refresh, scope, seconds = answer.get("refresh_token"), answer.get("scope"), answer.get("expires_in")
    return Tokens(
        access=access,
        refresh=refresh if isinstance(refresh, str) and refresh else former.refresh if former else "",
        expires_in=int(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 10**9 else None,
        scope=scope if isinstance(scope, str) else former.scope if former else "",
    )


def error_in(body: bytes) -> str:
    """Return the OAuth error code in an answer; empty if there is none."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    code = answer.get("error") if isinstance(answer, Mapping) else None
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""
