"""Subscriptions: receivers outside get events of agents, signed, in order, each at least once under one id."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from ikigai_actors import ActorSystem, BadInput, Reply, ScriptedProvider, Signal, ToolCall, tool
from ikigai_actors.errors import StoreError, SubscriptionNotFound
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.questions.links import opened_link, operator_key
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.handles.ref import System
from ikigai_actors.system.remote.client import Client
from tests.kit.databases import eventually, sql
from tests.kit.echo import echo
from tests.kit.http_servers import LocalServer
from tests.kit.program import COMMAND, PATIENCE, environment
from tests.kit.zygote import popen

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
DAY = 24 * 3600 * 1000


class Receiver:
    """Somebody else's web server, which checks each delivery with the library of Standard Webhooks."""

    def __init__(self) -> None:
        self.got: list[tuple[str, Any]] = []
        self.paths: list[str] = []
        self.secret = SECRET
        self.requests: list[tuple[bytes, dict[str, str]]] = []
        self.status = 204
        self.holds = threading.Event()
        """Set while it answers at once; else what it gets waits for its answer."""
        self.holds.set()
        self.headers: dict[str, str] = {}
        self.dies = False
        """Whether it ends before it answers, as a process that is killed."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                value = Webhook(receiver.secret).verify(raw, headers)
                receiver.requests.append((raw, headers))
                receiver.got.append((headers["webhook-id"], value))
                receiver.paths.append(self.path)
                receiver.holds.wait(PATIENCE)
                if receiver.dies:
                    return
                self.send_response(receiver.status)
                for name, text in receiver.headers.items():
                    self.send_header(name, text)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None: ...

        self._server = LocalServer(Handler)
        self.url = f"{self._server.url}/events"

    def kinds(self) -> list[str]:
        return [value["type"] for _, value in self.got]

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    opened = Receiver()
    yield opened
    opened.close()


@pytest.fixture
def secret(tmp_path: Path) -> str:
    place = tmp_path / "secret"
    place.write_text(f"{SECRET}\n", encoding="utf-8")
    return f"file:{place}"


@pytest.fixture
def host(durable: str) -> Iterator[ActorSystem]:
    with ActorSystem.open(durable, ScriptedProvider(echo), allow_private=["127.0.0.1"]) as system:
        yield system


@pytest.fixture(params=["the host", "a process beside it"])
def system(request: pytest.FixtureRequest, host: ActorSystem, durable: str) -> Iterator[System]:
    """A system that makes the subscription: the host must hear of it from both."""
    if request.param == "the host":
        yield host
    else:
        with AttachedSystem.open(durable) as attached:
            yield attached


def test_the_end_of_a_turn_is_delivered_with_a_good_signature(
    system: System, host: ActorSystem, receiver: Receiver, secret: str
) -> None:
    kid = host.root.fork(name="kid")
    made = system.subscriptions.add(receiver.url, [secret], ["turn"], agent="kid")
    assert kid.prompt("Hello").get(timeout=60).text == "Hello / 1"
    eventually(lambda: len(receiver.got) == 1, "it is delivered")
    name, value = receiver.got[0]
    position = kid.history()[-1].position
    assert value["type"] == "turn.done"
    assert value["data"] == {
        "agent": kid.uuid,
        "name": "kid",
        "position": position,
        "turn": f"{kid.uuid}/t{position - 1}",
        "text": "Hello / 1",
    }
    eventually(lambda: system.subscriptions.counts(made) == {"received": 1}, "its result is written")
    [delivery] = system.subscriptions.deliveries(made)
    assert (delivery.id, delivery.tries, delivery.said) == (name, 1, "204 No Content")


def test_those_get_the_event_who_want_its_kind_of_that_agent(
    host: ActorSystem, receiver: Receiver, secret: str
) -> None:
    kid = host.root.fork(name="kid")
    child, other = kid.fork(name="child"), host.root.fork(name="other")
    add = host.subscriptions.add
    ids = {
        "all": add(receiver.url, [secret]),
        "below": add(receiver.url, [secret], agent=kid),
        "alone": add(receiver.url, [secret], agent="kid", below=False),
        "deaths": add(receiver.url, [secret], ["agent.died"]),
        "other": add(receiver.url, [secret], agent=other),
    }
    child.prompt("a").get(timeout=60)
    kid.prompt("b").get(timeout=60)
    kid.kill()

    def kinds() -> dict[str, list[str]]:
        deliveries = {name: host.subscriptions.deliveries(subscription) for name, subscription in ids.items()}
        return {name: sorted(delivery.key.kind for delivery in some) for name, some in deliveries.items()}

    eventually(lambda: len(kinds()["deaths"]) == 1, "the death is there")
    assert kinds() == {
        "all": ["agent.died", "turn.done", "turn.done"],
        "below": ["agent.died", "turn.done", "turn.done"],
        "alone": ["agent.died", "turn.done"],
        "deaths": ["agent.died"],
        "other": [],
    }


def test_a_receiver_that_fails_gets_it_again_under_the_same_id(
    host: ActorSystem, receiver: Receiver, secret: str
) -> None:
    receiver.status = 500
    made = host.subscriptions.add(receiver.url, [secret], ["turn"])
    host.root.prompt("a").get(timeout=60)
    host.root.prompt("b").get(timeout=60)
    eventually(lambda: [delivery.tries for delivery in host.subscriptions.deliveries(made)] == [0, 1], "it is tried")
    [_, first] = host.subscriptions.deliveries(made)
    assert first.said.startswith("500")
    assert first.due_at is not None
    receiver.status = 200
    host._store.write(lambda tx: sql(tx, "UPDATE deliveries SET due_at = 1 WHERE tries = 1"))
    host.subscriptions.resume(made)  # the host looks again
    eventually(lambda: len(receiver.got) == 3, "both are received")
    assert [value["data"]["text"][0] for _, value in receiver.got] == ["a", "a", "b"]
    assert len({name for name, _ in receiver.got}) == 2


def test_a_receiver_that_is_gone_ends_its_subscription(host: ActorSystem, receiver: Receiver, secret: str) -> None:
    receiver.status = 410
    made = host.subscriptions.add(receiver.url, [secret], ["turn"])
    host.root.prompt("a").get(timeout=60)
    eventually(lambda: host.subscriptions.list() == [], "it has ended")
    assert host.subscriptions.counts(made) == {"dead": 1}
    with pytest.raises(SubscriptionNotFound):
        host.subscriptions.redeliver(made)


def test_a_redirection_is_not_followed(host: ActorSystem, receiver: Receiver, secret: str) -> None:
    receiver.status, receiver.headers = 307, {"Location": f"{receiver.url}/elsewhere"}
    made = host.subscriptions.add(receiver.url, [secret], ["turn"])
    host.root.prompt("a").get(timeout=60)
    eventually(lambda: [delivery.tries for delivery in host.subscriptions.deliveries(made)] == [1], "it is tried")
    assert receiver.paths == ["/events"]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"])
def test_an_address_that_is_not_allowed_is_not_reached(
    durable: str, receiver: Receiver, secret: str, name: str
) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        made = system.subscriptions.add(receiver.url.replace("127.0.0.1", name), [secret], ["turn"])
        system.root.prompt("a").get(timeout=60)
        eventually(lambda: system.subscriptions.deliveries(made)[0].tries == 1, "it is tried")
        assert "is not an address that this host may reach" in system.subscriptions.deliveries(made)[0].said
    assert receiver.got == []


def test_a_subscription_that_fails_for_a_day_is_paused_with_a_notice(
    host: ActorSystem, receiver: Receiver, secret: str
) -> None:
    kid = host.root.fork(name="kid")
    watcher = host.subscriptions.add(receiver.url, [secret], ["subscription.paused"])
    made = host.subscriptions.add(receiver.url + "/broken", ["env:NOT_THERE"], ["turn"], agent=kid)
    host._store.write(lambda tx: sql(tx, "UPDATE subscriptions SET failing_since = 1 WHERE url LIKE '%broken'"))
    kid.prompt("a").get(timeout=60)
    eventually(lambda: receiver.kinds() == ["subscription.paused"], "somebody hears of it")
    assert receiver.got[0][1]["data"] | {"position": 0} == {
        "agent": kid.uuid,
        "name": "kid",
        "position": 0,
        "subscription": made,
    }
    assert host.subscriptions.get(made).paused_at is not None
    [notice] = kid.read_mail()
    assert f"ikigai subscription resume {made}" in notice.body
    assert "none of the secrets is there" in notice.body
    eventually(lambda: host.subscriptions.counts(watcher) == {"received": 1}, "its result is written")


def test_a_question_is_delivered_under_the_name_that_every_door_takes(
    durable: str, receiver: Receiver, secret: str
) -> None:
    @tool(policy="ask")
    def pay(amount: int, note: str) -> str:
        """Pay."""
        return f"paid {amount}"

    script = ScriptedProvider([Reply("", (ToolCall("pay", {"amount": 3, "note": "x" * 9_000}),)), Reply("Done")])
    with ActorSystem.open(durable, script, tools=[pay], approvals="ask", allow_private=["127.0.0.1"]) as system:
        system.subscriptions.add(receiver.url, [secret], ["question"])
        outcome = system.root.prompt("go")
        eventually(lambda: receiver.kinds() == ["question.asked"], "it is delivered")
        data = receiver.got[0][1]["data"]
        [question] = system.questions.pending()
        assert (data["question"], data["kind"], data["digest"]) == (question.id, "approve", question.digest)
        assert (data["form"], data["asks"]) == (None, ["role:approve"])
        [call] = system.approvals.pending()
        assert (data["call"], data["tool"], data["arguments"]["amount"]) == (call.full_name, "pay", 3)
        assert len(data["arguments"]["note"]) == 4_000
        pending = system.approvals.find(data["agent"], data["call"])
        assert pending is not None
        assert system.approvals.approve(pending)
        assert outcome.get(timeout=60).text == "Done"


def test_a_question_brings_a_link_that_answers_it_where_a_subscription_wants_it(
    receiver: Receiver, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "a1" * 32
    script = ScriptedProvider([Reply("", (ToolCall("ask_person", {"question": "How many?"}),)), "Done"])
    with ActorSystem.open(":memory:", script, approvals="ask", allow_private=["127.0.0.1"]) as system:
        for links, reference in (("https://x/agents", ""), ("", "env:OPERATOR"), ("https://x", "OPERATOR")):
            with pytest.raises(BadInput):
                system.subscriptions.add(receiver.url, [secret], links=links, key=reference)
        made = system.subscriptions.add(
            receiver.url, [secret], ["question"], thin=True, links="https://x/agents/", key="env:OPERATOR"
        )
        system.root.prompt("go")
        eventually(
            lambda: [delivery.tries for delivery in system.subscriptions.deliveries(made)] == [1],
            "a try without the key",
        )
        assert "the operator's key is not there" in (system.subscriptions.deliveries(made)[0].said or "").lower()
        monkeypatch.setenv("OPERATOR", key)
        system.subscriptions.redeliver(made)
        eventually(lambda: receiver.kinds() == ["question.asked"], "it is delivered")
        place, _, link = receiver.got[0][1]["data"]["link"].rpartition("/")
        opened = opened_link([operator_key(key)], link)
        assert (place, opened and opened.question) == ("https://x/agents/q", system.questions.pending()[0].id)


@pytest.mark.slow("waits for a second")
def test_a_decision_on_a_question_is_an_event_and_so_is_a_default(receiver: Receiver, secret: str) -> None:
    def asks(**arguments: Any) -> Reply:
        return Reply("", (ToolCall("ask_person", {"question": "How many?", "form": {"type": "integer"}, **arguments}),))

    script = ScriptedProvider([asks(), asks(within="1s", default=7), asks(), "Done"])
    with ActorSystem.open(":memory:", script, approvals="ask", allow_private=["127.0.0.1"]) as system:
        system.subscriptions.add(receiver.url, [secret], ["question"])
        outcome = system.root.prompt("go")
        answered = set[str]()

        def endless() -> list[str]:
            pending = system.questions.pending()
            return [question.id for question in pending if question.row.next is None and question.id not in answered]

        for answer in (3, None):
            eventually(lambda: len(endless()) == 1, "the question without an end")
            [question] = endless()
            system.questions.answer(question, answer, by="anna")
            answered.add(question)
        assert outcome.get(timeout=60).text == "Done"
        eventually(lambda: len(receiver.got) == 6, "all are delivered")
        asked = [event for _, event in receiver.got if event["type"] == "question.asked"]
        decided = [(event["type"], event["data"]) for _, event in receiver.got if event["type"] != "question.asked"]
        assert [event["data"]["question"] for event in asked] == [data["question"] for _, data in decided]
        assert [(kind, data["how"], data["by"], data.get("answer"), data["tool"]) for kind, data in decided] == [
            ("question.answered", "answered", "anna", 3, "ask_person"),
            ("question.expired", "expired", "runtime", 7, "ask_person"),
            ("question.answered", "declined", "anna", None, "ask_person"),
        ]


def test_a_turn_that_ends_decides_no_question(receiver: Receiver, secret: str) -> None:
    asks = Reply("", (ToolCall("ask_person", {"question": "How many?"}),))
    with ActorSystem.open(
        ":memory:", ScriptedProvider([asks, "Done"]), approvals="ask", allow_private=["127.0.0.1"]
    ) as system:
        system.subscriptions.add(receiver.url, [secret])
        system.root.prompt("go")
        eventually(lambda: system.questions.pending() != [], "it asks")
        system.root.signal(Signal.INT)
        eventually(lambda: receiver.kinds() == ["question.asked", "turn.interrupted"], "all is delivered")


def test_what_was_received_or_died_is_sent_again_on_request(host: ActorSystem, receiver: Receiver, secret: str) -> None:
    made = host.subscriptions.add(receiver.url, [secret], ["turn"])
    host.root.prompt("a").get(timeout=60)
    eventually(lambda: host.subscriptions.counts(made) == {"received": 1}, "it is received")
    assert host.subscriptions.redeliver(made) == 0
    [delivery] = host.subscriptions.deliveries(made)
    assert host.subscriptions.redeliver(made, delivery.id) == 1
    eventually(lambda: [name for name, _ in receiver.got] == [delivery.id] * 2, "it is received again")
    eventually(lambda: host.subscriptions.counts(made) == {"received": 1}, "its result is written")
    host._store.write(lambda tx: sql(tx, "UPDATE deliveries SET done_at = NULL"))
    assert host.subscriptions.redeliver(made, since=2**61) == 0
    assert host.subscriptions.redeliver(made) == 1
    eventually(lambda: len(receiver.got) == 3, "it is received once more")
    with pytest.raises(BadInput, match="no delivery 'msg_0'"):
        host.subscriptions.redeliver(made, "msg_0")


def test_a_delivery_that_waits_for_its_next_try_is_tried_at_once_on_request(
    host: ActorSystem, receiver: Receiver, secret: str
) -> None:
    receiver.status = 500
    made = host.subscriptions.add(receiver.url, [secret], ["turn"])
    host.root.prompt("a").get(timeout=60)
    eventually(lambda: [each.tries for each in host.subscriptions.deliveries(made)] == [1], "its failure is written")
    receiver.status = 204
    assert host.subscriptions.redeliver(made) == 1
    eventually(lambda: host.subscriptions.counts(made) == {"received": 1}, "it is received long before its time")


def test_a_paused_subscription_waits_and_a_removed_one_is_over(
    host: ActorSystem, receiver: Receiver, secret: str
) -> None:
    made = host.subscriptions.add(receiver.url, [secret], ["turn"])
    host.subscriptions.pause(made)
    host.root.prompt("a").get(timeout=60)
    assert host.subscriptions.counts(made) == {"waiting": 1}
    host.subscriptions.resume(made)
    eventually(lambda: len(receiver.got) == 1, "it goes on")
    host.subscriptions.remove(made)
    host.root.prompt("b").get(timeout=60)
    assert host.subscriptions.list() == []
    with pytest.raises(SubscriptionNotFound):
        host.subscriptions.get(made)


def test_a_prune_keeps_what_waits_and_fsck_finds_the_rows_sound(
    host: ActorSystem, receiver: Receiver, secret: str
) -> None:
    received = host.subscriptions.add(receiver.url, [secret], ["turn"])
    waiting = host.subscriptions.add(receiver.url, [secret], ["turn"])
    host.subscriptions.pause(waiting)
    host.root.prompt("a").get(timeout=60)
    eventually(lambda: host.subscriptions.counts(received) == {"received": 1}, "it is received")
    prune_logs(host._store, 0, host._clock.now_ms() + 31 * DAY)
    assert host.subscriptions.counts(received) == {}
    assert host.subscriptions.counts(waiting) == {"waiting": 1}
    assert check(host._store) == []


def test_an_address_that_is_none_is_refused(host: ActorSystem) -> None:
    no_host: list[Any] = ["ftp://x/", "https://", "x", "https://x:0/", "https://x\ny/", 7]
    for url in (*no_host, "https://u:p@x/", "https://x/#a"):
        with pytest.raises(BadInput):
            host.subscriptions.add(url, ["env:S"])
    assert host.subscriptions.list() == []


@pytest.mark.slow("starts a host twice, and kills it")
def test_a_delivery_whose_host_is_killed_before_the_answer_comes_again_under_its_id(
    receiver: Receiver, secret: str, durable: str
) -> None:
    database = durable
    words = ["--database", database, "--provider", "offline", "host", "--allow-private", "127.0.0.1"]
    with ExitStack() as started:

        def host() -> "subprocess.Popen[bytes]":
            program = popen([*COMMAND, *words], env=environment(), stderr=subprocess.DEVNULL)
            started.callback(program.wait)
            started.callback(program.kill)
            return program

        receiver.holds.clear()
        first = host()
        eventually(lambda: hosted(database), "the host")
        with AttachedSystem.open(database) as system:
            made = system.subscriptions.add(receiver.url, [secret], ["turn"])
            system.root.prompt("Hello").get(timeout=PATIENCE)
            eventually(lambda: len(receiver.got) == 1, "it is on its way")
            first.kill()
            first.wait()
            receiver.holds.set()
            host()
            eventually(lambda: system.subscriptions.counts(made) == {"received": 1}, "it is received")
        assert len({name for name, _ in receiver.got}) == 1
        assert receiver.kinds() == ["turn.done"] * 2


def hosted(database: str) -> bool:
    """Whether a host runs the agents of a database."""
    with suppress(StoreError), Client.open(database) as client:
        return client.host() is not None
    return False
