"""Endpoints: a signed delivery from outside is a prompt, a mail or a child of an agent, once."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentDead, BadInput, ScriptedProvider
from ikigai_actors.errors import EndpointNotFound, Forged
from ikigai_actors.records.arrivals.endpoints import SetEndpoint
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.endpoints import LARGEST_DELIVERY, child_of
from ikigai_actors.system.handles.ref import AgentRef, System
from ikigai_actors.types import Received
from tests.kit.databases import eventually, sql
from tests.kit.echo import echo

SECRET = "a secret"
DAY = 24 * 3600 * 1000


@pytest.fixture
def secret(tmp_path: Path) -> str:
    place = tmp_path / "secret"
    place.write_text(f"{SECRET}\n", encoding="utf-8")
    return f"file:{place}"


@pytest.fixture
def host(durable: str) -> Iterator[ActorSystem]:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        yield system


@pytest.fixture(params=["the host", "a process beside it"])
def system(request: pytest.FixtureRequest, host: ActorSystem, durable: str) -> Iterator[System]:
    """A system that receives: both must carry a delivery out."""
    if request.param == "the host":
        yield host
    else:
        with AttachedSystem.open(durable) as attached:
            yield attached


def send(system: System, endpoint: str, value: Any, delivery: str, secret: str = SECRET) -> Received:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    signature = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
    headers = {"X-Hub-Signature-256": f"sha256={signature}", "X-GitHub-Delivery": delivery, "Cookie": "crumb"}
    received = system.endpoints.receive(endpoint, headers, raw)
    assert isinstance(received, Received)
    return received


def said(agent: AgentRef) -> list[str]:
    return [message.content for message in agent.history() if message.kind == "user"]


def origins(agent: AgentRef) -> list[Any]:
    return [message.data.get("origin") for message in agent.history() if message.kind == "user"]


def test_a_delivery_is_a_prompt_once_however_often_it_is_sent(system: System, host: ActorSystem, secret: str) -> None:
    kid = host.root.fork(name="kid")
    assert system.endpoints.add("shop", "kid", "github", [secret], template="Order {order.id}")
    first = send(system, "shop", {"order": {"id": 7}}, "d1")
    assert (first.status, first.gave["agent"]) == ("taken", kid.uuid)
    again = send(system, "shop", {"order": {"id": 7}}, "d1")
    assert again == first._replace(repeated=True, done=None)
    eventually(
        lambda: [m.content for m in kid.history() if m.kind == "assistant"] == ["Order 7 / 1"], "it is carried out"
    )
    assert said(kid) == ["Order 7"]
    assert origins(kid) == [{"endpoint": "shop", "delivery": "d1"}]
    assert system.endpoints.counts("shop") == {"taken": 1}


def test_a_delivery_is_a_mail_that_waits(system: System, host: ActorSystem, secret: str) -> None:
    kid = host.root.fork(name="kid")
    system.endpoints.add("shop", kid, "github", [secret], way="mail", template="Order {id}")
    received = send(system, "shop", {"id": 7}, "d1")
    [mail] = kid.mails()
    assert (mail.id, mail.body) == (received.gave["mail"], "Order 7")
    assert said(kid) == []


def test_a_delivery_is_a_child_with_a_uuid_of_its_own(system: System, host: ActorSystem, secret: str) -> None:
    kid = host.root.fork(name="kid")
    system.endpoints.add("issues", kid, "github", [secret], way="fork", template="Issue {number}")
    received = send(system, "issues", {"number": 3}, "d1")
    assert received.gave["child"] == child_of(kid.uuid, "issues", "d1")
    eventually(lambda: [child.uuid for child in kid.children()] == [received.gave["child"]], "it is carried out")
    child = host.handle(received.gave["child"])
    eventually(lambda: said(child) == ["Issue 3"], "it is carried out")
    assert origins(child) == [{"endpoint": "issues", "delivery": "d1"}]


def test_a_forged_delivery_and_one_to_nobody_leave_nothing(system: System, host: ActorSystem, secret: str) -> None:
    system.endpoints.add("shop", host.root.fork(name="kid"), "github", [secret])
    with pytest.raises(Forged):
        send(system, "shop", {}, "d1", secret="another")
    with pytest.raises(EndpointNotFound):
        send(system, "nobody", {}, "d1")
    with pytest.raises(BadInput, match="at most"):
        send(system, "shop", b"x" * (LARGEST_DELIVERY + 1), "d1")
    assert system.endpoints.counts("shop") == {}


def test_a_secret_that_is_not_there_refuses_everything(host: ActorSystem) -> None:
    host.endpoints.add("shop", host.root.fork(name="kid"), "github", ["env:NO_SUCH_VARIABLE_HERE"])
    with pytest.raises(Forged, match="env:NO_SUCH_VARIABLE_HERE"):
        send(host, "shop", {}, "d1", secret="")


def test_what_is_not_wanted_is_filtered_and_what_cannot_be_taken_is_dead(host: ActorSystem, secret: str) -> None:
    kid = host.root.fork(name="kid")
    host.endpoints.add("shop", kid, "github", [secret], template="{id}", where={"kind": ["order"]})
    assert send(host, "shop", {"kind": "visit"}, "d1").status == "filtered"
    broken = send(host, "shop", b"no json", "d2")
    assert (broken.status, "JSON" in broken.gave["why"]) == ("dead", True)
    kid.kill()
    dead = send(host, "shop", {"kind": "order", "id": 7}, "d3")
    assert (dead.status, "dead" in dead.gave["why"]) == ("dead", True)
    assert host.endpoints.counts("shop") == {"filtered": 1, "dead": 2}
    with pytest.raises(AgentDead):
        host.endpoints.add("shop", kid, "github", [secret])
    heir = host.root.fork(name="heir")
    host.endpoints.add("shop", heir, "github", [secret], template="{id}", where={"kind": ["order"]})
    assert [arrival.status for arrival in host.endpoints.replay_dead("shop")] == ["dead", "taken"]
    assert host.endpoints.replay_dead("shop") == []  # safe to repeat
    eventually(lambda: said(heir) == ["7"], "it is carried out")
    assert [arrival.id for arrival in host.endpoints.arrivals("shop")] == ["d3~2", "d2~2", "d3", "d2", "d1"]


def test_a_paused_endpoint_holds_what_comes_and_takes_it_in_order(
    system: System, host: ActorSystem, secret: str
) -> None:
    kid = host.root.fork(name="kid")
    system.endpoints.add("shop", kid, "github", [secret], way="mail", template="{n}")
    system.endpoints.pause("shop")
    assert [send(system, "shop", {"n": n}, f"d{n}").status for n in range(3)] == ["held"] * 3
    assert kid.mails() == []
    assert [arrival.id for arrival in system.endpoints.resume("shop")] == ["d0", "d1", "d2"]
    assert [mail.body for mail in sorted(kid.mails(), key=lambda mail: mail.id)] == ["0", "1", "2"]
    assert send(system, "shop", {"n": 0}, "d0").repeated
    system.endpoints.remove("shop")
    with pytest.raises(EndpointNotFound):
        send(system, "shop", {"n": 4}, "d4")


def test_no_more_children_live_at_once_than_an_endpoint_may_have(host: ActorSystem, secret: str) -> None:
    kid = host.root.fork(name="kid")
    host.endpoints.add("issues", kid, "github", [secret], way="fork", template="{n}", most=2)
    assert [send(host, "issues", {"n": n}, f"d{n}").status for n in range(4)] == ["taken", "taken", "held", "held"]
    eventually(lambda: len(kid.children()) == 2, "it is carried out")
    first = host.handle(child_of(kid.uuid, "issues", "d0"))
    first.kill()
    assert [(arrival.id, arrival.status) for arrival in host.endpoints.take_held("issues")] == [("d2", "taken")]
    third = child_of(kid.uuid, "issues", "d2")
    eventually(lambda: third in [child.uuid for child in kid.children()], "it is carried out")


def test_no_delivery_passes_one_that_was_held_before_it(host: ActorSystem, secret: str) -> None:
    kid = host.root.fork(name="kid")
    host.endpoints.add("shop", kid, "github", [secret], way="mail", template="{n}")
    host.endpoints.pause("shop")
    send(host, "shop", {"n": 0}, "d0")
    host._writer.perform(SetEndpoint("shop"))  # it goes on, and nobody has taken what it holds
    assert send(host, "shop", {"n": 1}, "d1").status == "taken"
    assert [mail.body for mail in sorted(kid.mails(), key=lambda mail: mail.id)] == ["0", "1"]


@pytest.mark.thorough("many deliveries")
def test_every_dead_delivery_is_repeated_however_many_there_are(host: ActorSystem, secret: str) -> None:
    host.endpoints.add("shop", host.root.fork(name="kid"), "github", [secret], way="mail", template="{n}")
    for n in range(120):  # more than are read at once
        send(host, "shop", f"no json {n}".encode(), f"d{n}")
    assert [arrival.id for arrival in host.endpoints.replay_dead("shop")] == [f"d{n}~2" for n in range(120)]
    assert host.endpoints.replay_dead("shop") == []


def test_the_same_body_under_another_id_is_marked_and_can_be_refused(host: ActorSystem, secret: str) -> None:
    kid = host.root.fork(name="kid")
    host.endpoints.add("shop", kid, "github", [secret], way="mail")
    send(host, "shop", {"n": 1}, "d1")
    assert send(host, "shop", {"n": 1}, "d2").gave["same_body_as"] == "d1"
    host.endpoints.add("shop", kid, "github", [secret], way="mail", once_by_body=True)
    assert send(host, "shop", {"n": 1}, "d3").repeated
    assert host.endpoints.counts("shop") == {"taken": 2}


def test_no_secret_and_no_cookie_is_kept(host: ActorSystem, secret: str) -> None:
    host.endpoints.add("shop", host.root.fork(name="kid"), "github", [secret], way="mail")
    send(host, "shop", {"n": 1}, "d1")
    [(headers,)] = host._store.read(lambda tx: sql(tx, "SELECT headers FROM arrivals"))
    assert json.loads(headers) == {"x-github-delivery": "d1"}
    [(spec,)] = host._store.read(lambda tx: sql(tx, "SELECT spec FROM endpoints"))
    assert SECRET not in spec


def test_a_prune_deletes_bodies_after_a_week_and_arrivals_after_a_month(host: ActorSystem, secret: str) -> None:
    host.endpoints.add("shop", host.root.fork(name="kid"), "github", [secret], way="mail")
    send(host, "shop", {"n": 1}, "d1")
    now = host._clock.now_ms()
    prune_logs(host._store, 0, now + 8 * DAY)
    with pytest.raises(BadInput, match="7 days"):
        host.endpoints.replay("shop", "d1")
    prune_logs(host._store, 0, now + 31 * DAY)
    assert host.endpoints.arrivals("shop") == []
    assert check(host._store) == []


WRONG_TERMS: tuple[dict[str, Any], ...] = (
    {"scheme": "rot13"},
    {"way": "shout"},
    {"template": "{"},
    {"secrets": []},
    {"secrets": ["hunter2"]},
    {"secrets": "env:SECRET"},
    {"most": 0},
    {"name": "Shop!"},
    {"name": "../shop"},
)


def test_terms_that_cannot_be_are_refused(host: ActorSystem) -> None:
    for terms in WRONG_TERMS:
        arguments = {"name": "shop", "scheme": "github", "secrets": ["env:S"], **terms}
        name, scheme, secrets = arguments.pop("name"), arguments.pop("scheme"), arguments.pop("secrets")
        with pytest.raises(BadInput):
            host.endpoints.add(name, host.root, scheme, secrets, **arguments)
    assert host.endpoints.list() == []
