"""Secrets of endpoints and subscriptions that the database keeps: sealed, shown once, opened in their own row alone."""

import base64
import json
from collections.abc import Iterator
from dataclasses import replace

import httpx2
import pytest
from click.testing import CliRunner, Result
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from ikigai_actors import ActorSystem, BadInput
from ikigai_actors.api import AttachedSystem
from ikigai_actors.errors import Forged, SubscriptionNotFound
from ikigai_actors.records.arrivals.endpoints import AddEndpoint, endpoint_place
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.outbox.subscriptions import MOST_SECRETS
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.kept_secrets import KeptSecrets, seal_secrets_again
from tests.doors.test_accounts import every_byte
from tests.doors.test_api import delivery, staged
from tests.kit.databases import eventually
from tests.system.test_subscriptions import SECRET, Receiver

CANARY = "canary-of-an-endpoint"
NEW_SECRET = "whsec_" + base64.b64encode(b"the new secret of a receiver").decode()
KEY, OTHER_KEY = "a1" * 32, "b2" * 32


@pytest.fixture(autouse=True)
def _operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IKIGAI_KEYS", "env:SEALING_KEY")
    monkeypatch.setenv("SEALING_KEY", KEY)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    opened = Receiver()
    yield opened
    opened.close()


def received(system: ActorSystem | AttachedSystem, endpoint: str, secret: str) -> object:
    sent = delivery(b'{"id": 7}', "d1", secret)
    result = system.endpoints.receive(endpoint, sent["headers"], sent["content"])
    return getattr(result, "status", result)


def test_a_secret_that_comes_by_the_network_is_in_no_byte_of_the_database_and_in_no_answer(durable: str) -> None:
    with staged(durable) as stage:

        async def work(client: httpx2.AsyncClient) -> list[str]:
            terms = {"name": "shop", "to": "kid", "scheme": "hmac", "plain": [CANARY]}
            headers = {"Idempotency-Key": "k"}
            shown = [await client.post("/v1/endpoint/add", json=terms, headers=headers) for _ in range(2)]
            events = {"url": "https://example.com", "plain": [CANARY], "under": "kid"}
            shown.append(await client.post("/v1/subscription/add", json=events))
            shown.append(await client.post("/v1/endpoint/add", json={**terms, "plain": [CANARY + "\n"]}))
            shown += [await client.get(f"/v1/{what}/list") for what in ("endpoint", "subscription")]
            assert [each.status_code for each in shown] == [200, 200, 200, 400, 200, 200]
            assert shown[1].headers["idempotency-replayed"] == "true"
            assert shown[0].json()["value"]["spec"]["secrets"] == ["sealed"]
            for way in ("secret", "secrets", "make"):  # references, and what is shown once, are for the command line
                refused = await client.post("/v1/endpoint/add", json={**terms, way: ["env:SEALING_KEY"]})
                assert refused.status_code == 400
            return [each.text for each in shown]

        shown = stage.run(work)
        assert received(stage.system, "shop", CANARY) == "taken"
        assert check(stage.host._store) == []
        assert CANARY not in "".join(shown)
        assert CANARY.encode() not in every_byte(durable)


def test_a_branch_makes_and_sees_no_endpoints(durable: str) -> None:
    with staged(durable) as stage:
        stage.principals["branch"] = stage.principals["op"]._replace(under=stage.host.agent("kid").uuid)
        asked: list[tuple[str, dict[str, object]]] = [
            ("endpoint/list", {}),
            ("endpoint/add", {"name": "a", "to": "kid", "scheme": "hmac", "plain": [CANARY]}),
            ("subscription/list", {}),
            ("subscription/add", {"url": "https://example.com", "plain": [CANARY]}),
        ]

        async def work(client: httpx2.AsyncClient) -> list[int]:
            return [(await client.post(f"/v1/{path}", json=body)).status_code for path, body in asked]

        assert set(stage.run(work, "branch")) == {403}
        assert stage.host.endpoints.list() == []


def test_a_made_secret_is_shown_once_and_the_host_signs_with_it(durable: str, receiver: Receiver) -> None:
    with ActorSystem.open(durable, allow_private=["127.0.0.1"]) as host:
        add = [
            "--database",
            durable,
            "endpoint",
            "add",
            "shop",
            "--to",
            host.root.uuid,
            "--scheme",
            "hmac",
            "--make",
            "--json",
        ]
        made = CliRunner().invoke(cli, add)
        assert made.exit_code == 0, made.output
        secret = json.loads(made.output)["secret"]
        assert received(host, "shop", secret) == "taken"
        seen = CliRunner().invoke(cli, ["--database", durable, "endpoint", "show", "shop", "--json"]).output
        assert secret not in seen
        assert secret.encode() not in every_byte(durable)
        host.subscriptions.add(receiver.url, plain=[SECRET], kinds=["turn"])
        host.root.prompt("Hello").get(timeout=60)
        eventually(lambda: "turn.done" in receiver.kinds(), "the library of Standard Webhooks takes the signature")


def test_a_receiver_verifies_with_the_old_and_the_new_secret_until_the_rotation_is_finished(
    durable: str, receiver: Receiver
) -> None:
    with staged(durable, allow_private=["127.0.0.1"]) as stage:
        made = stage.host.subscriptions.add(receiver.url, plain=[SECRET], kinds=["turn"])

        def verifiers() -> list[str]:
            """The secrets by which the library of Standard Webhooks takes the next delivery."""
            count = len(receiver.requests)
            stage.host.root.prompt("Hello").get(timeout=60)
            eventually(lambda: len(receiver.requests) == count + 1, "it is delivered")
            return [secret for secret in (SECRET, NEW_SECRET) if verifies(secret, *receiver.requests[-1])]

        async def rotate(client: httpx2.AsyncClient) -> list[str]:
            terms = {"subscription": made, "plain": NEW_SECRET}
            shown = [
                await client.post("/v1/subscription/rotate", json=terms, headers={"Idempotency-Key": "k"})
                for _ in range(2)
            ]
            assert [each.status_code for each in shown] == [200, 200]
            return [each.text for each in shown]

        async def finish(client: httpx2.AsyncClient) -> int:
            terms = {"subscription": made, "finish": True}
            return (await client.post("/v1/subscription/rotate", json=terms)).status_code

        assert verifiers() == [SECRET]
        shown = stage.run(rotate)
        assert verifiers() == [SECRET, NEW_SECRET]
        receiver.secret = NEW_SECRET
        assert stage.run(finish) == 200
        assert verifiers() == [NEW_SECRET]
        assert len(stage.host.subscriptions.get(made).spec.secrets) == 1
        assert check(stage.host._store) == []
    assert NEW_SECRET not in "".join(shown)
    assert NEW_SECRET.encode() not in every_byte(durable)


def verifies(secret: str, body: bytes, headers: dict[str, str]) -> bool:
    try:
        Webhook(secret).verify(body, headers)
    except WebhookVerificationError:
        return False
    return True


def test_a_rotation_takes_one_secret_and_the_latest_is_left(durable: str) -> None:
    with ActorSystem.open(durable) as host:
        made = host.subscriptions.add("https://example.com", ["env:OLD"])

        def rotate(*words: str) -> Result:
            return CliRunner().invoke(cli, ["--database", durable, "subscription", "rotate", made, *words, "--json"])

        for wrong in ([], ["--make", "--finish"], ["--secret", "NEW"], ["--plain", "short"]):
            assert rotate(*wrong).exit_code != 0
        for reference in ("env:NEW", "env:NEW", "env:OLD"):  # one that is given again is the latest
            rotate("--secret", reference)
        assert host.subscriptions.get(made).spec.secrets == ("env:NEW", "env:OLD")
        secret = json.loads(rotate("--make").output)["secret"]
        assert secret.encode() not in every_byte(durable)
        for number in range(MOST_SECRETS - 3):
            host.subscriptions.rotate(made, f"env:N{number}")
        with pytest.raises(BadInput, match="--finish"):
            host.subscriptions.rotate(made, "env:ONE_MORE")
        host.subscriptions.rotate(made, "env:NEW")
        host.subscriptions.finish_rotation(made)
        assert host.subscriptions.get(made).spec.secrets == ("env:NEW",)
        with pytest.raises(SubscriptionNotFound):
            host.subscriptions.rotate("sub_0", "env:NEW")


def test_without_a_key_nothing_is_kept_and_the_error_says_what_to_do(
    durable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IKIGAI_KEYS")
    with ActorSystem.open(durable) as host:
        for add in (
            lambda: host.endpoints.add("shop", host.root, "hmac", plain=[CANARY]),
            lambda: host.subscriptions.add("https://example.com", plain=[CANARY]),
        ):
            with pytest.raises(BadInput, match=r"need the operator's key.*IKIGAI_KEYS") as refused:
                add()
            assert CANARY not in str(refused.value)
        with pytest.raises(BadInput, match=r"Expected a reference to the secret"):
            host.endpoints.add("shop", host.root, "hmac", ["sealed:AAAA"])
        with pytest.raises(BadInput, match=r"Expected a secret"):
            host.endpoints.add("shop", host.root, "hmac")
        assert (host.endpoints.list(), host.subscriptions.list()) == ([], [])


def test_a_secret_opens_in_its_own_row_alone(durable: str) -> None:
    with ActorSystem.open(durable) as host:
        host.endpoints.add("shop", host.root, "hmac", plain=[CANARY])
        spec = replace(host.endpoints.get("shop").spec, way="mail")
        host._writer.perform(AddEndpoint("desk", host.root.uuid, spec, 1))
        with pytest.raises(Forged, match="was changed, or belongs elsewhere"):
            received(host, "desk", CANARY)
        assert received(host, "shop", CANARY) == "taken"


def test_another_key_seals_all_again_and_the_former_one_can_go(durable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ActorSystem.open(durable) as host:
        host.endpoints.add("shop", host.root, "hmac", ["env:ELSEWHERE"], plain=[CANARY])
        host.subscriptions.add("https://example.com", plain=[CANARY])
        former = host.endpoints.get("shop").spec.secrets
    monkeypatch.setenv("FORMER", KEY)
    monkeypatch.setenv("SEALING_KEY", OTHER_KEY)
    rekey = ["--database", durable, "account", "rekey", "--key", "env:SEALING_KEY", "--key", "env:FORMER", "--json"]
    done = [json.loads(CliRunner().invoke(cli, rekey).output) for _ in range(2)]
    assert done == [{"sealed": 0, "secrets": 2}, {"sealed": 0, "secrets": 0}]
    with ActorSystem.open(durable) as host:
        after = host.endpoints.get("shop").spec.secrets
        assert (after[0], after[1] != former[1]) == ("env:ELSEWHERE", True)
        assert received(host, "shop", CANARY) == "taken"
        assert CANARY.encode() not in every_byte(durable)


def test_a_row_that_changes_while_another_key_comes_keeps_the_change_and_is_sealed(
    durable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWER", OTHER_KEY)
    secrets = KeptSecrets(lambda: ["env:NEWER", "env:SEALING_KEY"])
    with ActorSystem.open(durable) as host:
        host.endpoints.add("shop", host.root, "hmac", plain=[CANARY])
        changes = iter(["mail"])

        def written(unit: Unit) -> bool:
            for way in changes:  # once, between the look and the commit
                host.endpoints.add("shop", host.root, "hmac", plain=[CANARY], way=way)
            return bool(host._writer.perform(unit))

        assert seal_secrets_again(secrets, host._store.read, written) == 1
        spec = host.endpoints.get("shop").spec
        assert spec.way == "mail"
        newer = KeptSecrets(lambda: ["env:NEWER"])
        assert newer.opened(endpoint_place("shop"), spec.secrets) == [CANARY]
