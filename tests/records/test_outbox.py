"""The pure parts of events out: addresses, signatures, and when a try follows."""

from datetime import UTC, datetime
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from ikigai_actors import BadInput
from ikigai_actors.records.outbox.addresses import AllowedAddresses
from ikigai_actors.records.outbox.deliveries import (
    DeliveryKey,
    DueDelivery,
    RecordDelivery,
    counted_deliveries,
    next_deliveries,
)
from ikigai_actors.records.outbox.events import EVENT_KINDS, check_event_kinds
from ikigai_actors.records.outbox.retries import (
    FAILING_MS,
    LONGEST_PUT_OFF,
    TRY_PAUSES,
    DeliveryVerdict,
    ReceiverAnswer,
    verdict,
)
from ikigai_actors.records.outbox.signing import signed_headers
from ikigai_actors.records.outbox.subscriptions import SubscriptionSpec, subscription_with
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.unit import write_alone
from tests.kit.trees import HOST, plant

PUBLIC = AllowedAddresses()
DAY = 86_400_000


@pytest.fixture
def outbox(store: Store) -> Store:
    """A database in which agent "kid" of host `HOST` has ended three turns, and one subscription wants to know."""
    plant(store, kid="root")
    wants = {"scope": None, "below": 1, "kinds": ",turn.done,", "spec": SubscriptionSpec(("env:S",)).encode()}

    def work(tx: Transaction) -> None:
        tx.run("add_subscription", id="s1", url="https://x/", **wants, now=1)
        for position in (2, 4, 6):
            tx.run("post_event", agent="kid", position=position, kind="turn.done", about="t1", now=position)

    store.write(work)
    return store


def heads(store: Store) -> list[DueDelivery]:
    return store.read(lambda tx: next_deliveries(tx, "s1", HOST, 10))


def record(store: Store, due: DueDelivery, status: int, now: int = 10, host: str = HOST) -> None:
    write_alone(store, RecordDelivery(due, ReceiverAnswer(status, str(status)), host, now))


def test_only_the_earliest_event_of_an_agent_is_sent(outbox: Store) -> None:
    for position in (2, 4, 6):
        [due] = heads(outbox)
        assert (due.key.position, due.tries) == (position, 0)
        record(outbox, due, 204)
    assert heads(outbox) == []
    assert outbox.read(lambda tx: counted_deliveries(tx, "s1")) == {"received": 3}


def test_a_result_counts_only_of_the_host_and_the_epoch_that_have_the_agent(outbox: Store) -> None:
    [due] = heads(outbox)
    record(outbox, due, 204, host="another")
    record(outbox, due._replace(epoch=due.epoch + 1), 204)
    record(outbox, due._replace(tries=1), 204)
    assert heads(outbox) == [due]
    record(outbox, due, 500)
    record(outbox, due, 204)  # what came of the same try is written once
    [again] = heads(outbox)
    assert (again.key, again.tries) == (due.key, 1)


def test_nothing_but_failures_for_a_day_pauses_a_subscription_and_one_success_does_not(outbox: Store) -> None:
    for status, now in ((500, 0), (500, DAY - 1), (204, DAY), (500, DAY + 1), (500, 2 * DAY)):
        record(outbox, heads(outbox)[0], status, now)
    assert outbox.read(lambda tx: subscription_with(tx, "s1")).paused_at is None
    record(outbox, heads(outbox)[0], 500, 2 * DAY + 1)
    assert outbox.read(lambda tx: subscription_with(tx, "s1")).paused_at == 2 * DAY + 1


def test_the_id_of_a_delivery_is_made_of_its_row() -> None:
    key = DeliveryKey("s1", "kid", 2, "turn.done", "t1")
    assert key.id == "msg_" + sha256(b"s1\0kid\x002\0turn.done\0t1").hexdigest()[:32]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "255.255.255.255", "224.0.0.1", "192.0.2.1", "198.18.0.1", "240.0.0.1", "::", "::1", "fe80::1", "fe80::1%eth0",
        "fc00::1", "fd00::1", "ff02::1", "fec0::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "2002:7f00:1::", "2002:808:808::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1", "no address", "",
    ],
)  # fmt: skip
def test_what_is_not_public_is_not_reached(address: str) -> None:
    assert not PUBLIC.allows(address, 443, tls=True)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_what_is_public_is_reached_by_tls_at_ports_of_the_web_alone(address: str) -> None:
    assert all(PUBLIC.allows(address, port, tls=True) for port in (443, 1024, 8443))
    assert not any(PUBLIC.allows(address, port, tls=True) for port in (22, 25, 80, 1023))
    assert not PUBLIC.allows(address, 443, tls=False)


def test_what_the_operator_allows_is_reached_also_without_tls() -> None:
    allowed = AllowedAddresses.of(["10.1.0.0/16", " ::1 "])
    assert allowed.allows("10.1.2.3", 80, tls=False)
    assert allowed.allows("::ffff:10.1.2.3", 80, tls=False)
    assert allowed.allows("::1", 25, tls=False)
    assert not allowed.allows("10.2.0.1", 443, tls=True)
    for wrong in (["10.1.0.1/16"], ["tea"], "10.0.0.0/8", 7, [7]):
        with pytest.raises(BadInput):
            AllowedAddresses.of(wrong)  # type: ignore[arg-type]


@given(body=st.binary(max_size=200), secrets=st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=3))
def test_the_library_of_standard_webhooks_takes_the_signature_of_each_secret(body: bytes, secrets: list[bytes]) -> None:
    import base64

    texts = [f"whsec_{base64.b64encode(secret).decode()}" for secret in secrets]
    now = int(datetime.now(UTC).timestamp())
    headers = signed_headers("msg_1", now, b'"' + body.hex().encode() + b'"', texts)
    for text in texts:
        assert Webhook(text).verify(b'"' + body.hex().encode() + b'"', headers) == body.hex()
    with pytest.raises(WebhookVerificationError):
        Webhook(texts[0]).verify(b'"' + body.hex().encode() + b'" ', headers)


def test_a_secret_that_is_no_base64_is_refused() -> None:
    with pytest.raises(BadInput, match="not base64"):
        signed_headers("msg_1", 1, b"", ["whsec_!"])


def test_the_pauses_grow_and_end_with_a_dead_delivery() -> None:
    now = 1_000_000
    for tries, pause in enumerate(TRY_PAUSES):
        due = verdict(ReceiverAnswer(500, "500"), "msg_1", tries, now, None).due_at
        assert due is not None
        assert 0.8 * pause * 1000 <= due - now <= 1.2 * pause * 1000
    assert verdict(ReceiverAnswer(500, "500"), "msg_1", len(TRY_PAUSES), now, None) == DeliveryVerdict(False, None)


def test_an_answer_decides() -> None:
    assert verdict(ReceiverAnswer(204, ""), "m", 3, 1, 1) == DeliveryVerdict(True, None)
    assert verdict(ReceiverAnswer(410, ""), "m", 0, 1, None).ends
    for status in (0, 199, 301, 307, 400, 404, 429, 500):
        again = verdict(ReceiverAnswer(status, ""), "m", 0, 1, None)
        assert again.due_at is not None
        assert not again.ends
        assert not again.pauses


def test_a_receiver_can_put_a_try_off_for_a_day() -> None:
    assert verdict(ReceiverAnswer(503, "", 600.0), "m", 0, 0, None).due_at == 600_000
    assert verdict(ReceiverAnswer(503, "", 1e9), "m", 0, 0, None).due_at == LONGEST_PUT_OFF * 1000


def test_nothing_but_failures_for_a_day_pauses() -> None:
    assert not verdict(ReceiverAnswer(500, ""), "m", 3, FAILING_MS - 1, 0).pauses
    assert verdict(ReceiverAnswer(500, ""), "m", 3, FAILING_MS, 0).pauses
    assert verdict(ReceiverAnswer(500, ""), "m", len(TRY_PAUSES), FAILING_MS, 0).pauses


def test_a_word_stands_for_all_kinds_that_begin_so() -> None:
    assert check_event_kinds(["turn"]) == tuple(kind for kind in EVENT_KINDS if kind.startswith("turn."))
    assert check_event_kinds(["turn.done", "turn.done"]) == ("turn.done",)
    for wrong in ([], "turn", ["turn."], ["tea"], ["turn.done", 7]):
        with pytest.raises(BadInput):
            check_event_kinds(wrong)  # type: ignore[arg-type]
