"""Signatures of deliveries: the sender's are taken, all others are refused, whatever a stranger sends."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from ikigai_actors.errors import Forged
from ikigai_actors.records.arrivals.signatures import SCHEMES, SignedDelivery, verified_delivery

NOW = 1_790_000_000.0
SECRET = "whsec_" + base64.b64encode(b"a secret of the sender's own....").decode()
BODY = b'{"id": "evt_1", "event_id": "Ev1", "action": "opened"}'


def signed(scheme: str, body: bytes, secret: str = SECRET, at: float = NOW) -> dict[str, str]:
    """The headers of a delivery, as its sender makes them."""

    def mac(key: str, text: bytes) -> str:
        return hmac.new(key.encode(), text, hashlib.sha256).hexdigest()

    time = str(int(at))
    match scheme:
        case "standard":  # by the scheme's own library
            said = Webhook(secret).sign("msg_1", datetime.fromtimestamp(int(at), UTC), body.decode())
            return {"webhook-id": "msg_1", "webhook-timestamp": time, "webhook-signature": said}
        case "github":
            return {"x-github-delivery": "72d3162e", "x-hub-signature-256": f"sha256={mac(secret, body)}"}
        case "stripe":
            return {"stripe-signature": f"t={time},v1={mac(secret, time.encode() + b'.' + body)},v0=beef"}
        case "slack":
            text = b"v0:" + time.encode() + b":" + body
            return {"x-slack-request-timestamp": time, "x-slack-signature": f"v0={mac(secret, text)}"}
        case "hmac":
            return {"x-delivery": "d1", "x-signature": mac(secret, body)}
        case _:
            return {"authorization": f"Bearer {secret}", "ce-source": "shop", "ce-id": "7"}


NAMES = {
    "standard": "msg_1",
    "github": "72d3162e",
    "stripe": "evt_1",
    "slack": "Ev1",
    "hmac": "d1",
    "bearer": "shop 7",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_delivery_that_its_sender_has_signed_is_taken_under_its_name(scheme: str) -> None:
    delivery = verified_delivery(scheme, signed(scheme, BODY), BODY, [SECRET], NOW)
    assert delivery == SignedDelivery(NAMES[scheme], json.loads(BODY), is_json=True)


def test_the_example_that_github_publishes_is_taken() -> None:
    """From its page about validating deliveries."""
    shown = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    taken = verified_delivery(
        "github", {"x-hub-signature-256": shown}, b"Hello, World!", ["It's a Secret to Everybody"], NOW
    )
    assert not taken.is_json
    assert taken.id == hashlib.sha256(b"Hello, World!").hexdigest()  # no header names it


def test_the_example_that_slack_publishes_is_taken() -> None:
    """From its page about verifying requests."""
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
        b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
        b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    shown = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    headers = {"x-slack-request-timestamp": "1531420618", "x-slack-signature": shown}
    verified_delivery("slack", headers, body, ["8f742231b10e8888abcd99yyyzzz85a5"], 1531420618)


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_nothing_that_differs_by_a_bit_from_what_was_signed_is_taken(scheme: str, data: st.DataObject) -> None:
    headers = signed(scheme, BODY)
    name = data.draw(st.sampled_from(sorted({*headers} - {"x-github-delivery", "x-delivery", "ce-id", "ce-source"})))
    raw = bytearray(headers[name].encode())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 6))
    forged = {**headers, name: raw.decode("latin-1")}
    try:
        verified_delivery(scheme, forged, BODY, [SECRET], NOW)
    except Forged:
        return
    kept = verified_delivery(
        scheme, headers, BODY, [SECRET], NOW
    )  # a letter of a hash in capitals, a blank: the same bytes
    assert verified_delivery(scheme, forged, BODY, [SECRET], NOW) == kept
    assert forged[name].lower().strip() == headers[name].lower() or name == "stripe-signature"


@pytest.mark.parametrize("scheme", sorted({*SCHEMES} - {"bearer"}))
@given(body=st.binary(max_size=80) | st.sampled_from([BODY + b"\n", b" " + BODY, BODY.replace(b" ", b"")]))
def test_other_bytes_than_were_signed_are_refused(scheme: str, body: bytes) -> None:
    if body != BODY:
        with pytest.raises(Forged):
            verified_delivery(scheme, signed(scheme, BODY), body, [SECRET], NOW)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_another_secret_none_and_no_header_are_refused(scheme: str) -> None:
    other = "whsec_" + base64.b64encode(b"somebody else's secret..........").decode()
    for secrets in ([other], [""], []):
        with pytest.raises(Forged):
            verified_delivery(scheme, signed(scheme, BODY), BODY, secrets, NOW)
    with pytest.raises(Forged):
        verified_delivery(scheme, {}, BODY, [SECRET], NOW)
    assert verified_delivery(
        scheme, signed(scheme, BODY), BODY, [other, SECRET], NOW
    ).id  # while one is changed for another


PRIVATE_KEY = Ed25519PrivateKey.from_private_bytes(b"a private key of the sender's...")
PUBLIC_KEY = f"whpk_{base64.b64encode(PRIVATE_KEY.public_key().public_bytes_raw()).decode()}"


def signed_by_key(content: bytes = b"msg_1.%d.%s" % (NOW, BODY)) -> dict[str, str]:
    """The headers of a delivery that is signed by a private key."""
    said = f"v1,AAAA v1a,{base64.b64encode(PRIVATE_KEY.sign(content)).decode()}"
    return {"webhook-id": "msg_1", "webhook-timestamp": str(int(NOW)), "webhook-signature": said}


def test_a_public_key_takes_what_its_private_key_has_signed_and_nothing_else() -> None:
    assert verified_delivery("standard", signed_by_key(), BODY, [PUBLIC_KEY], NOW).id == "msg_1"
    for secrets in ([SECRET, PUBLIC_KEY], [PUBLIC_KEY, SECRET]):  # while one replaces the other
        for headers in (signed_by_key(), signed("standard", BODY)):
            verified_delivery("standard", headers, BODY, secrets, NOW)
    other = f"whpk_{base64.b64encode(b'k' * 32).decode()}"
    for headers, body, secrets, now in (
        (signed_by_key(), BODY + b" ", [PUBLIC_KEY], NOW),
        (signed_by_key(b"msg_2.%d.%s" % (NOW, BODY)), BODY, [PUBLIC_KEY], NOW),
        (signed_by_key(), BODY, [PUBLIC_KEY], NOW + 301),
        (signed_by_key(), BODY, [other], NOW),
        (signed_by_key(), BODY, [SECRET], NOW),
        (signed("standard", BODY), BODY, [PUBLIC_KEY], NOW),
        (signed_by_key(), BODY, ["whpk_AAAA"], NOW),
    ):
        with pytest.raises(Forged):
            verified_delivery("standard", headers, body, secrets, now)


def test_who_knows_a_public_key_cannot_sign_by_it() -> None:
    time = str(int(NOW)).encode()
    mac = hmac.digest(PUBLIC_KEY.encode(), b"msg_1." + time + b"." + BODY, "sha256")
    for version in ("v1", "v1a"):
        said = f"{version},{base64.b64encode(mac).decode()}"
        for secrets in ([PUBLIC_KEY], [PUBLIC_KEY, SECRET]):
            with pytest.raises(Forged):
                verified_delivery("standard", {**signed_by_key(), "webhook-signature": said}, BODY, secrets, NOW)


@pytest.mark.parametrize("secret", ["whsec_", "whsec_no base64!"])
def test_a_secret_that_gives_no_key_lets_nobody_in(secret: str) -> None:
    time = str(int(NOW))
    mac = hmac.new(b"", b"msg_1." + time.encode() + b"." + BODY, hashlib.sha256).digest()
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": time,
        "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
    }
    with pytest.raises(Forged, match="not base64"):
        verified_delivery("standard", headers, BODY, [secret], NOW)


@pytest.mark.parametrize("scheme", ["github", "hmac", "stripe", "slack", "bearer"])
def test_by_an_empty_secret_nobody_comes_in(scheme: str) -> None:
    with pytest.raises(Forged):
        verified_delivery(scheme, signed(scheme, BODY, ""), BODY, [""], NOW)


@pytest.mark.parametrize("scheme", ["standard", "stripe", "slack"])
@pytest.mark.parametrize("apart", [300.0, -300.0])
def test_a_signature_holds_for_five_minutes(scheme: str, apart: float) -> None:
    headers = signed(scheme, BODY)
    assert verified_delivery(scheme, headers, BODY, [SECRET], NOW + apart)
    with pytest.raises(Forged, match="another time"):
        verified_delivery(scheme, headers, BODY, [SECRET], NOW + apart + (1 if apart > 0 else -1))


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_no_request_of_a_stranger_raises_anything_but_forged(scheme: str, data: st.DataObject) -> None:
    text = st.text(st.characters(max_codepoint=0x3FF), max_size=40)
    headers = {name: data.draw(text) for name in signed(scheme, BODY)}
    with pytest.raises(Forged):
        verified_delivery(scheme, headers, data.draw(st.binary(max_size=40)), [SECRET], NOW)


def test_slack_gets_its_challenge_back_and_nobody_else() -> None:
    body = b'{"type": "url_verification", "challenge": "3eZbrw1aB"}'
    assert verified_delivery("slack", signed("slack", body), body, [SECRET], NOW).challenge == "3eZbrw1aB"
    assert verified_delivery("hmac", signed("hmac", body), body, [SECRET], NOW).challenge is None


def test_a_name_that_is_too_long_or_cannot_be_shown_counts_by_its_hash() -> None:
    for name in ("x" * 201, "a\nb"):
        headers = {**signed("hmac", BODY), "x-delivery": name}
        assert verified_delivery("hmac", headers, BODY, [SECRET], NOW).id == hashlib.sha256(name.encode()).hexdigest()
