"""What a remote MCP server and its authorization server may say of themselves."""

from typing import Any

import pytest

from ikigai_actors import BadInput
from ikigai_actors.tools.mcp.oauth import (
    OAuthClient,
    callback_url,
    challenge_in,
    check_iss,
    client_document,
    code_request,
    issuer_in,
    oauth_tokens_in,
    resource_in,
)

SERVER, ISSUER = "https://mcp.example/a/mcp", "https://login.example"
DESCRIBED = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "code_challenge_methods_supported": ["S256"],
}
RESOURCE = {"resource": "https://mcp.example/a", "authorization_servers": [ISSUER]}


def test_a_server_that_describes_itself_is_understood() -> None:
    assert resource_in(RESOURCE, SERVER) == ("https://mcp.example/a", ISSUER, [])
    issuer = issuer_in({**DESCRIBED, "client_id_metadata_document_supported": True}, f"{ISSUER}/")
    assert (issuer.token, issuer.takes_documents, issuer.sends_iss) == (f"{ISSUER}/token", True, False)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"resource": "https://elsewhere.example/a"}, "another resource"),
        ({"resource": "https://mcp.example/a/mcp/more"}, "another resource"),
        ({"resource": "https://mcp.example/a/m"}, "another resource"),
        ({"resource": "https://[mcp"}, "another resource"),
        ({"resource": None}, "another resource"),
        ({"authorization_servers": []}, "names no authorization server"),
        ({"authorization_servers": ["https://[login"]}, "names no authorization server"),
        ({"authorization_servers": ["file:///etc/passwd"]}, "names no authorization server"),
    ],
)
def test_a_description_of_another_resource_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        resource_in({**RESOURCE, **changed}, SERVER)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"issuer": "https://elsewhere.example"}, "another issuer"),
        ({"issuer": 7}, "no JSON object with an issuer"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE with S256"),
        ({"token_endpoint": ""}, "lacks its endpoints"),
        ({"authorization_endpoint": "javascript:alert(1)//"}, "no address of http or https"),
        ({"authorization_endpoint": "data:text/html,x"}, "no address of http or https"),
        ({"authorization_endpoint": "https://[login"}, "no address of http or https"),
    ],
)
def test_an_authorization_server_to_which_nobody_may_be_sent_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        issuer_in({**DESCRIBED, **changed}, ISSUER)


def test_the_address_of_the_document_is_the_id_of_the_client() -> None:
    document = client_document("https://agents.example/team/")
    assert document["client_id"] == "https://agents.example/team/oauth/client.json"
    assert document["redirect_uris"] == [callback_url("https://agents.example/team")]
    assert document["token_endpoint_auth_method"] == "none"


def test_a_secret_goes_by_the_method_that_was_registered_and_no_other_way() -> None:
    about = {"code": "c", "verifier": "v", "redirect": "https://a.example/cb", "resource": SERVER}
    basic = code_request(OAuthClient("me:1", "s&x", "client_secret_basic"), **about)
    assert basic.headers == {"Authorization": "Basic bWUlM0ExOnMlMjZ4"}
    assert (basic.fields["client_id"], "client_secret" in basic.fields) == ("me:1", False)
    post = code_request(OAuthClient("me", "s", "client_secret_post"), **about)
    assert (post.headers, post.fields["client_secret"], post.fields["client_id"]) == ({}, "s", "me")
    public = code_request(OAuthClient("me"), **about)
    assert (public.headers, "client_secret" in public.fields, public.fields["resource"]) == ({}, False, SERVER)


def test_another_issuer_and_one_that_is_silent_against_its_word_are_refused() -> None:
    check_iss("", ISSUER, always=False)
    check_iss(ISSUER, ISSUER, always=True)
    for iss, always in (("https://elsewhere.example", False), ("", True)):
        with pytest.raises(BadInput, match="Another authorization server"):
            check_iss(iss, ISSUER, always=always)


def test_a_challenge_is_read_with_and_without_quotation_marks() -> None:
    header = 'Bearer realm="a, b", error="insufficient_scope", scope="x y", resource_metadata=https://a.example/m'
    assert challenge_in(header) == ("https://a.example/m", "x y", "insufficient_scope")
    assert challenge_in("") == ("", "", "")


@pytest.mark.parametrize(
    "body", [b"no JSON", b"[]", b'{"token_type": "bearer"}', b'{"access_token": "a b", "token_type": "bearer"}',
             b'{"access_token": "canary", "token_type": "mac"}', b'{"access_token": "canary"}'],
)  # fmt: skip
def test_an_answer_without_a_usable_token_is_refused_without_its_words(body: bytes) -> None:
    with pytest.raises(BadInput) as refused:
        oauth_tokens_in(body)
    assert "canary" not in str(refused.value)
