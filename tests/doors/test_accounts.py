"""Accounts at remote MCP servers: a call asks, a person connects, hosts renew. With the SDK's authorization server."""

import asyncio
import json
import logging
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from click.testing import CliRunner
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.routing import Mount

from ikigai_actors import ActorSystem, BadInput, McpServer, ScriptedProvider
from ikigai_actors.api import AttachedSystem, api
from ikigai_actors.records.accounts import FLOW_MS, AccountRow, KeepAccount, RemoveAccount, account_of
from ikigai_actors.records.outbox.addresses import AllowedAddresses
from ikigai_actors.records.questions.links import LINK_MS, operator_key, signed_link
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.system.accounts import Accounts, RenewalUnclear
from ikigai_actors.system.questions import WaitingQuestion
from ikigai_actors.testing import ManualClock
from ikigai_actors.tools.mcp.oauth import callback_url
from tests.doors.test_api_program import serving
from tests.kit.account_mcp import CANARY, AccountMcp, Browser, query_of
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import ROOT, eventually, sql
from tests.kit.remote_mcp import ASKED, CALLED, DONE, Halt, free_port
from tests.kit.tiers import spread
from tests.kit.tool_scripts import calling, results

pytestmark = pytest.mark.slow("starts servers on loopback")
HOST = """
import os, sys, threading
from ikigai_actors import ActorSystem, McpServer, ScriptedProvider
from tests.doors.test_accounts import model
tools = [McpServer(sys.argv[2], name="t", account="user")]
labels = {"user": "anna"}
joins = {"join": True, "name": f"host-{os.getpid()}"} if sys.argv[1].startswith("postgresql") else {}
options = {"tools": tools, "approvals": "ask", "labels": labels, "lease": 2.0, **joins}
with ActorSystem.open(sys.argv[1], ScriptedProvider(model), **options) as system:
    print("open", flush=True)
    threading.Event().wait()
"""
KEY, URL = "a1" * 32, "https://agents.test/agents"


@pytest.fixture
def server() -> Iterator[AccountMcp]:
    made = AccountMcp()
    made.start()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def _operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IKIGAI_KEYS", "env:ACCOUNT_KEY")
    monkeypatch.setenv("ACCOUNT_KEY", KEY)
    monkeypatch.setenv("IKIGAI_ALLOW_PRIVATE", "127.0.0.1")


class House:
    """A host whose agents have accounts, and the API beside it."""

    def __init__(self, database: str, server: AccountMcp) -> None:
        self.database, self.server = database, server
        self.system = AttachedSystem.open(database)
        self.api = api(self.system, lambda request: None, URL, ["env:ACCOUNT_KEY"])
        self.app = Starlette(routes=[Mount("/agents", self.api)])

    def browser(self) -> Browser:
        return Browser(self.app, "https://agents.test")

    def waiting(self) -> WaitingQuestion:
        eventually(lambda: len(self.system.questions.pending()) == 1, "the question")
        return self.system.questions.pending()[0]

    def link(self, question: str) -> str:
        expires_at = self.system._clock.now_ms() + LINK_MS
        return f"{URL}/q/{signed_link(operator_key(KEY), question, expires_at)}"

    def connect(self) -> str:
        answer = asyncio.run(self.browser().connect(self.link(self.waiting().id)))
        assert answer.status_code == 200, answer.text
        return answer.text

    def account(self, subject: str = "user=anna") -> AccountRow | None:
        row: AccountRow | None = self.system._store.read(lambda tx: account_of(tx, self.server.url, subject))
        return row

    def close(self) -> None:
        self.api.close()
        self.system.close()


def model(request: Any) -> Any:
    """A model that calls ``connect`` until it has it, then ``whose``, and gives the result."""
    seen = results(request)
    if not seen:
        return calling("t__whose" if any(tool["name"] == "t__whose" for tool in request.tools) else "t__connect")
    return calling("t__whose") if seen[0].content.startswith("Connected") else seen[0].content


@contextmanager
def host_of(
    database: str, server: AccountMcp, client: Mapping[str, str] | None = None, **options: Any
) -> Iterator[ActorSystem]:
    tools = [McpServer(server.url, name="t", account="user", **(client or {}))]  # type: ignore[arg-type]
    labels = {"user": "anna"}
    with ActorSystem.open(
        database, ScriptedProvider(model), tools=tools, approvals="ask", labels=labels, **options
    ) as it:
        yield it


def process_of(database: str, server: AccountMcp, errors: Any = None) -> "subprocess.Popen[str]":
    """A host in a process of its own, which is open; ``errors`` is the file of its log."""
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, database, server.url], stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT
    )
    assert host.stdout is not None
    assert host.stdout.readline() == "open\n"
    return host


def kill(host: "subprocess.Popen[str]") -> None:
    host.kill()
    host.communicate()


@contextmanager
def house_of(database: str, server: AccountMcp) -> Iterator[House]:
    house = House(database, server)
    try:
        yield house
    finally:
        house.close()


def test_a_call_asks_for_an_account_and_goes_on_once_it_is_connected(
    durable: str, server: AccountMcp, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), host_of(durable, server) as host, house_of(durable, server) as house:
        reply = host.root.prompt("go")
        question = house.waiting()
        assert (question.kind, question.asks[0]) == ("connect", "principal:anna")
        browser = house.browser()
        page = asyncio.run(browser.get(house.link(question.id))).text
        assert server.url in page
        assert "user=anna" in page
        back = asyncio.run(browser.connect(house.link(question.id)))
        assert back.status_code == 200, back.text
        assert reply.get(timeout=DEADLINE).text == "anna may notes"
        row = house.account()
        assert row is not None
        assert CANARY.encode() not in row.sealed
        kinds = [message.kind for message in host.root.history()]
        kinds = [kind for kind in kinds if kind in ("tool_call", "approval", "tool_result")]
        assert kinds == ["tool_call", "approval", "approval", "tool_call", "tool_result", "tool_call", "tool_result"]
        said = [message.data.get("by") for message in host.root.history() if message.kind == "approval"]
        assert said == [None, "account:user=anna"]
        assert hidden(durable)
    assert CANARY not in "".join(browser.seen)
    ours = ("ikigai_actors", "mcp", "aiohttp")
    records = [record.getMessage() for record in caplog.records if record.name.startswith(ours)]
    assert not [text for text in records if CANARY in text]


def connected(database: str, server: AccountMcp) -> None:
    """Let the call of a host end, with an account that is connected."""
    with host_of(database, server) as host, house_of(database, server) as house:
        reply = host.root.prompt("go")
        house.connect()
        assert reply.get(timeout=DEADLINE).text == "anna may notes"


@pytest.mark.thorough("hosts as processes; every run has the account in one process")
def test_a_host_that_was_killed_asks_on_and_another_one_goes_on_with_the_account(
    durable: str, server: AccountMcp
) -> None:
    first = process_of(durable, server)
    with house_of(durable, server) as begins, house_of(durable, server) as ends:
        begins.system.root.prompt("go")
        question = begins.waiting()
        kill(first)
        link = begins.link(question.id)
        browser = begins.browser()
        back = asyncio.run(browser.way_back(link))
        other = ends.browser()
        other.cookies = browser.cookies
        assert asyncio.run(other.get(back)).status_code == 200
        with host_of(durable, server) as host:
            eventually(lambda: host.root.history()[-1].content == "anna may notes", "the end of the turn")
        again = asyncio.run(other.get(back))  # a second time: the flow is gone, and nothing is redeemed
        assert (again.status_code, "was used before" in again.text) == (400, True)
    assert server.issuing.redeemed == 1
    assert hidden(durable)


@pytest.mark.thorough("kills of a program; every run has a door that is killed, in test_programs.py")
def test_an_api_that_was_killed_has_begun_what_another_one_finishes(durable: str, server: AccountMcp) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    words = ("--listen", f"127.0.0.1:{port}", "--url", "https://agents.test", "--key", "env:ACCOUNT_KEY")
    with host_of(durable, server) as host, house_of(durable, server) as house:
        reply = host.root.prompt("go")
        link = house.link(house.waiting().id).replace("/agents/q/", "/q/")
        with serving(durable, *words):  # killed at the end of the block
            browser = Browser(address, "https://agents.test")
            back = asyncio.run(browser.way_back(link))
        with serving(durable, *words):
            other = Browser(address, "https://agents.test")
            other.cookies = browser.cookies
            assert asyncio.run(other.get(back)).status_code == 200
        assert reply.get(timeout=DEADLINE).text == "anna may notes"
    assert hidden(durable)
    assert CANARY not in "".join(browser.seen + other.seen)


def test_nothing_is_redeemed_for_another_issuer_or_in_another_browser(durable: str, server: AccountMcp) -> None:
    with host_of(durable, server) as host, house_of(durable, server) as house:
        host.root.prompt("go")
        link = house.link(house.waiting().id)
        server.issuing.iss = "https://elsewhere.example"
        refused = asyncio.run(house.browser().connect(link))
        assert (refused.status_code, "Another authorization server" in refused.text) == (400, True)
        server.issuing.iss = server.issuing.url
        back = asyncio.run(house.browser().way_back(link))
        stranger = asyncio.run(house.browser().get(back))
        assert (stranger.status_code, "This browser has not begun this" in stranger.text) == (400, True)
        forged = back.replace(query_of(back)["state"], "forged")
        assert asyncio.run(house.browser().get(forged)).status_code == 400
        assert house.account() is None
        assert server.issuing.redeemed == 0
        assert house.waiting().kind == "connect"


def test_an_error_has_nothing_of_what_the_authorization_server_says(durable: str, server: AccountMcp) -> None:
    with host_of(durable, server) as host, house_of(durable, server) as house:
        host.root.prompt("go")
        browser = house.browser()
        back = asyncio.run(browser.way_back(house.link(house.waiting().id)))
        server.issuing.codes.clear()
        server.answers_tokens = '{"error": "invalid_grant", "error_description": "canary-in-an-error"}'
        refused = asyncio.run(browser.get(back))
        assert (refused.status_code, "400 invalid_grant" in refused.text) == (400, True)
        assert CANARY not in refused.text
        for status, text in spread(REFUSED_FOR_NOW, 3):
            server.answers_tokens, server.token_status = "", 400
            back = asyncio.run(browser.way_back(house.link(house.waiting().id)))
            server.answers_tokens, server.token_status = text, status
            refused = asyncio.run(browser.get(back))
            assert refused.status_code == 400
            assert CANARY not in refused.text
            assert house.account() is None
        server.answers_tokens = ""
        house.connect()


def test_a_row_opens_in_its_own_place_alone(durable: str, server: AccountMcp) -> None:
    connected(durable, server)
    with house_of(durable, server) as house:
        row = house.account()
        assert row is not None
        moved = KeepAccount(row.server, "user=bob", row.issuer, row.scope, row.expires_at, row.sealed)
        house.system._writer.perform(moved)
        accounts = accounts_of(house)
        assert asyncio.run(accounts.token(server.url, "user=anna")) in server.issuing.access
        with pytest.raises(BadInput, match="was changed, or belongs elsewhere") as refused:
            asyncio.run(accounts.token(server.url, "user=bob"))
        assert CANARY not in str(refused.value)


def test_of_four_at_once_one_renews_and_a_refresh_token_is_used_once(durable: str, server: AccountMcp) -> None:
    server.issuing.lives = 30
    connected(durable, server)
    server.issuing.lives = 3600
    before = server.issuing.renewals
    with house_of(durable, server) as house, house_of(durable, server) as other:
        four = [accounts_of(each) for each in (house, house, other, other)]

        async def at_once() -> list[str | None]:
            return await asyncio.gather(*(accounts.token(server.url, "user=anna") for accounts in four))

        tokens = asyncio.run(at_once())
        assert len(set(tokens)) == 1
        assert tokens[0] in server.issuing.access
        assert server.issuing.renewals == before + 1
    assert hidden(durable)


def test_a_renewal_that_was_lost_is_asked_for_again(durable: str, server: AccountMcp) -> None:
    """As after a crash between the service's answer and the commit: the refresh token of the row was used."""
    server.issuing.lives = 30
    connected(durable, server)
    with house_of(durable, server) as house:
        row = house.account()
        assert row is not None
        assert asyncio.run(accounts_of(house).token(server.url, "user=anna")) is not None
        after = house.account()
        assert after is not None
        back = KeepAccount(row.server, row.subject, row.issuer, row.scope, row.expires_at, row.sealed)
        house.system._writer.perform(back)
        assert asyncio.run(accounts_of(house).token(server.url, "user=anna")) is None
        assert house.account() is None  # so that the next call asks, as the first one does


REFUSED_FOR_NOW = [
    (200, "<html>Sign in to the network</html>"),
    (200, "{}"),
    (200, "[" * 100_000),
    (200, '{"access_token": 7, "token_type": "Bearer"}'),
    (200, '{"access_token": "canary-x", "token_type": "mac"}'),
    (302, "<html>Moved</html>"),
    (403, "<html>Forbidden</html>"),
    (429, "{}"),
    (503, '{"error": "temporarily_unavailable"}'),
    (400, '{"error": "temporarily_unavailable"}'),
]
"""Answers to a renewal that say nothing about the credential."""


def test_a_renewal_that_is_not_answered_as_it_should_be_fails_for_this_call_alone(
    durable: str, server: AccountMcp
) -> None:
    server.issuing.lives = 30
    connected(durable, server)
    with house_of(durable, server) as house:
        accounts = accounts_of(house)
        for status, text in REFUSED_FOR_NOW:
            server.answers_tokens, server.token_status = text, status
            with pytest.raises(RenewalUnclear, match="authorization server") as refused:
                asyncio.run(accounts.token(server.url, "user=anna"))
            assert CANARY not in str(refused.value)
            row = house.account()
            assert row is not None
            assert row.renewing_until is None  # the next call renews at once
        server.answers_tokens = ""
        assert asyncio.run(accounts.token(server.url, "user=anna")) in server.issuing.access
        for status, text in ((200, '{"error": "bad_refresh_token"}'), (400, "{}"), (401, "")):
            before = house.account()
            assert before is not None
            server.answers_tokens, server.token_status = text or " ", status
            assert asyncio.run(accounts.token(server.url, "user=anna")) is None
            assert house.account() is None
            fields = (before.server, before.subject, before.issuer, before.scope, before.expires_at, before.sealed)
            house.system._writer.perform(KeepAccount(*fields))


CLIENT_SECRET = f"{CANARY}of-the-client"


def register_by_hand(server: AccountMcp, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Register a client at the authorization server, whose secret is in the environment; return its setting."""
    server.issuing.clients["by-hand"] = OAuthClientInformationFull(
        client_id="by-hand", client_secret=CLIENT_SECRET, redirect_uris=[AnyUrl(callback_url(URL))], scope="notes",
        token_endpoint_auth_method="client_secret_basic",
    )  # fmt: skip
    server.issuing.lives = 30
    monkeypatch.setenv("CLIENT_SECRET", CLIENT_SECRET)
    return {"client_id": "by-hand", "client_secret": "env:CLIENT_SECRET"}


@pytest.mark.thorough("a second kind of renewal that fails")
def test_a_server_that_is_away_or_a_secret_that_is_not_there_leaves_the_renewal_to_the_next_call(
    durable: str, server: AccountMcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = register_by_hand(server, monkeypatch)
    with host_of(durable, server, client=client) as host, house_of(durable, server) as house:
        reply = host.root.prompt("go")
        house.connect()
        assert reply.get(timeout=DEADLINE).text == "anna may notes"
    with house_of(durable, server) as house:

        def fails(why: str) -> None:
            with pytest.raises(RenewalUnclear, match=why) as refused:
                asyncio.run(accounts_of(house).token(server.url, "user=anna"))
            assert CANARY not in str(refused.value)
            row = house.account()
            assert row is not None
            assert row.renewing_until is None

        monkeypatch.delenv("CLIENT_SECRET")
        fails("secret of the client is not there")
        monkeypatch.setenv("CLIENT_SECRET", "wrong")
        fails("401")
        monkeypatch.setenv("CLIENT_SECRET", CLIENT_SECRET)
        server.stop()
        fails("cannot be reached")
        server.start()
        assert asyncio.run(accounts_of(house).token(server.url, "user=anna")) in server.issuing.access


def test_an_account_answers_each_question_that_asks_for_it_and_no_other(durable: str, server: AccountMcp) -> None:
    with host_of(durable, server) as host, house_of(durable, server) as house:
        kids = [host.root.fork(name=f"kid{number}") for number in range(2)]
        other = host.root.fork(name="other", labels={"user": "bob"})
        replies = [agent.prompt("go") for agent in (host.root, *kids)]
        others = other.prompt("go")
        eventually(lambda: len(house.system.questions.pending()) == 4, "the questions")
        asked = {each.agent: each.id for each in house.system.questions.pending()}
        link = run_cli(durable, "account", "link", asked[kids[0].uuid], "--url", URL).strip()
        answer = asyncio.run(house.browser().connect(link))
        assert answer.status_code == 200, answer.text
        assert [reply.get(timeout=DEADLINE).text for reply in replies] == ["anna may notes"] * 3
        assert [each.agent for each in house.system.questions.pending()] == [other.uuid]
        assert server.issuing.redeemed == 1
        server.issuing.person = "bob"
        house.connect()
        assert others.get(timeout=DEADLINE).text == "bob may notes"


@pytest.mark.thorough("a second play of rights that are lacking")
def test_an_account_with_fewer_rights_leaves_the_question_for_more_open(durable: str, server: AccountMcp) -> None:
    connected(durable, server)
    server.needs = "more"
    with host_of(durable, server) as host, house_of(durable, server) as house:
        more = host.root.fork(name="more")
        wants_more = more.prompt("go")
        assert (house.waiting().call.connect or {})["scope"] == "notes more"
        house.system._writer.perform(RemoveAccount(server.url, "user=anna"))
        server.needs = ""
        reply = host.root.prompt("again")
        eventually(lambda: len(house.system.questions.pending()) == 2, "both questions")
        [asked] = [each.id for each in house.system.questions.pending() if each.agent == host.root.uuid]
        assert asyncio.run(house.browser().connect(house.link(asked))).status_code == 200
        assert reply.get(timeout=DEADLINE).text == "anna may notes"
        assert house.waiting().agent == more.uuid
        house.connect()
        assert wants_more.get(timeout=DEADLINE).text == "anna may notes more"


@pytest.mark.thorough("two hosts as processes; every run has the renewal that was lost, in one process")
@pytest.mark.sample(1, "fifteen seconds: two hosts as processes, and the lease of the killed one")
@pytest.mark.parametrize("point", [DONE, ASKED, CALLED])
def test_a_host_that_is_killed_in_a_renewal_loses_no_account_silently(
    point: str, new_postgres: Callable[[], str], server: AccountMcp, tmp_path: Path
) -> None:
    """Killed before the service rotates the token, after that and before the commit, and after the commit."""
    database = new_postgres()
    server.issuing.lives = 30
    connected(database, server)
    with (tmp_path / "log").open("w") as log, house_of(database, server) as house, ExitStack() as started:
        hosts = {host.pid: host for host in (process_of(database, server, log) for _ in range(2))}
        for host in hosts.values():
            started.enter_context(host)
            started.callback(host.kill)
        halt = server.halt = Halt(point)
        started.callback(halt.released.set)
        if point != ASKED:
            server.issuing.lives = 3600
        reply = house.system.root.prompt("again")
        assert halt.reached.wait(DEADLINE)
        before, spent = house.account(), list(server.issuing.presented)
        assert before is not None
        assert (before.renewing_until is None) == (point == CALLED)
        killed = hosts[owner_of(house)]
        killed.kill()
        killed.wait()
        halt.released.set()
        server.issuing.lives = 3600
        assert server.issuing.presented == spent  # nobody renews while the claim holds
        write_sql(house, "UPDATE accounts SET renewing_until = 0 WHERE renewing_until IS NOT NULL")  # 30 s later
        if point == DONE:
            assert house.waiting().kind == "connect"
            assert house.account() is None
            house.connect()
        assert reply.get(timeout=DEADLINE).text == "anna may notes"
        times = Counter(server.issuing.presented)
        assert max(times.values()) == (2 if point == DONE else 1)  # the server hears the spent token once more
        assert hidden(database)
    assert CANARY not in (tmp_path / "log").read_text()


def owner_of(house: House) -> int:
    """The process of the host that runs agent 0, by its name."""
    root = house.system.root.uuid
    asked = (
        "SELECT h.name FROM agents a JOIN shards s ON s.id = a.shard JOIN hosts h ON h.id = s.host "
        f"WHERE a.uuid = '{root}'"
    )
    [(name,)] = house.system._store.read(lambda tx: sql(tx, asked))
    return int(str(name).removeprefix("host-"))


def write_sql(house: House, statement: str) -> None:
    house.system._store.write(lambda tx: sql(tx, statement))


def test_an_account_that_is_removed_in_its_renewal_is_revoked_with_what_came(durable: str, server: AccountMcp) -> None:
    server.issuing.lives = 30
    connected(durable, server)
    with house_of(durable, server) as house, ThreadPoolExecutor(1) as pool:
        halt = server.halt = Halt(DONE)
        token = pool.submit(lambda: asyncio.run(accounts_of(house).token(server.url, "user=anna")))
        assert halt.reached.wait(DEADLINE)
        assert asyncio.run(accounts_of(house).remove(server.url, "user=anna"))[0]
        halt.released.set()
        assert token.result(DEADLINE) is None
        assert house.account() is None
    assert server.issuing.refresh == {}
    assert len(server.issuing.revoked) >= 2  # the tokens of the renewal, which nobody has


def test_a_right_that_is_lacking_is_asked_for_beside_those_that_are_there(durable: str, server: AccountMcp) -> None:
    connected(durable, server)
    server.needs = "more"
    with host_of(durable, server) as host, house_of(durable, server) as house:
        reply = host.root.prompt("again")
        connect = house.waiting().call.connect
        assert connect is not None
        assert connect["scope"] == "notes more"
        house.connect()
        assert reply.get(timeout=DEADLINE).text == "anna may notes more"


def test_a_client_that_was_registered_by_hand_is_used_and_its_secret_is_looked_up_alone(
    durable: str, server: AccountMcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = register_by_hand(server, monkeypatch)
    with host_of(durable, server, client=client) as host, house_of(durable, server) as house:
        reply = host.root.prompt("go")
        house.connect()
        assert reply.get(timeout=DEADLINE).text == "anna may notes"
        assert list(server.issuing.clients) == ["by-hand"]
        assert server.issuing.renewals  # with the secret, too
    assert hidden(durable)


def test_a_server_that_takes_documents_gets_the_address_of_the_one_of_the_api(durable: str, server: AccountMcp) -> None:
    described = httpx2.get(f"{server.issuing.url}/.well-known/oauth-authorization-server").json()
    server.describes = json.dumps({**described, "client_id_metadata_document_supported": True})
    with host_of(durable, server) as host, house_of(durable, server) as house:
        reply = host.root.prompt("go")
        document = asyncio.run(house.browser().get(f"{URL}/oauth/client.json")).json()
        client = OAuthClientInformationFull.model_validate({**document, "scope": "notes"})
        assert client.client_id == f"{URL}/oauth/client.json"
        server.issuing.clients[client.client_id] = client  # as a server that fetches it
        house.connect()
        assert reply.get(timeout=DEADLINE).text == "anna may notes"
        assert list(server.issuing.clients) == [client.client_id]


def test_a_flow_is_over_after_ten_minutes_and_nothing_is_redeemed(durable: str, server: AccountMcp) -> None:
    with host_of(durable, server) as host, house_of(durable, server) as house:
        host.root.prompt("go")
        question = house.waiting()
        assert question.call.connect is not None
        clock = ManualClock()
        accounts = accounts_of(house, clock.now_ms)

        def come_back(seconds: float) -> None:
            there = asyncio.run(accounts.begin(question.id, question.call.connect or {}, URL))
            query = query_of(str(asyncio.run(house.browser().get(there)).headers["location"]))
            clock.advance(seconds)
            asyncio.run(accounts.finish(query["state"], query["code"], query["iss"]))

        with pytest.raises(BadInput, match="came after ten minutes"):
            come_back(FLOW_MS / 1000)
        assert (house.account(), server.issuing.redeemed) == (None, 0)
        come_back(FLOW_MS / 1000 - 1)
        assert server.issuing.redeemed == 1


def test_an_account_is_listed_sealed_by_another_key_and_removed_with_its_tokens(
    durable: str, server: AccountMcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected(durable, server)
    ikigai = partial(run_cli, durable)
    listed = ikigai("account", "list", "--json")
    assert [account["subject"] for account in json.loads(listed)] == ["user=anna"]
    monkeypatch.setenv("NEW_KEY", "c3" * 32)
    assert "sealed 1 account again" in ikigai("account", "rekey", "--key", "env:NEW_KEY", "--key", "env:ACCOUNT_KEY")
    assert "another operator's key" in ikigai("account", "rekey", "--key", "env:ACCOUNT_KEY", fails=True)
    monkeypatch.setenv("IKIGAI_KEYS", "env:NEW_KEY")
    assert "removed and revoked" in ikigai("account", "remove", server.url, "user=anna")
    assert len(server.issuing.revoked) == 2
    assert "No accounts" in ikigai("account", "list")
    assert "has no account" in ikigai("account", "remove", server.url, "user=anna", fails=True)


def test_a_server_that_names_a_private_address_is_not_asked(
    durable: str, server: AccountMcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IKIGAI_ALLOW_PRIVATE", "")
    with host_of(durable, server) as host, house_of(durable, server) as house:
        host.root.prompt("go")
        page = asyncio.run(house.browser().agree(house.link(house.waiting().id)))
        assert (page.status_code, "cannot be reached" in page.text) == (400, True)
        assert not server.issuing.clients


def test_accounts_are_refused_without_a_key_and_an_agent_without_the_label_gets_an_error(
    durable: str, server: AccountMcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [McpServer(server.url, name="t", account="user")]
    monkeypatch.setenv("IKIGAI_KEYS", "")
    with pytest.raises(BadInput, match="need the operator's key"):
        ActorSystem.open(durable, ScriptedProvider(model), tools=tools)
    monkeypatch.setenv("IKIGAI_KEYS", "env:ACCOUNT_KEY")
    with ActorSystem.open(durable, ScriptedProvider(model), tools=tools, approvals="ask") as host:
        assert "has no label user" in host.root.prompt("go").get(timeout=DEADLINE).text


def run_cli(database: str, *arguments: str, fails: bool = False) -> str:
    ran = CliRunner().invoke(cli, ["--database", database, *arguments])
    assert (ran.exit_code != 0) == fails, ran.output
    return f"{ran.output}{ran.stderr}{ran.exception or ''}"


def accounts_of(house: House, now_ms: Callable[[], int] | None = None) -> Accounts:
    system = house.system
    allowed, now_ms = AllowedAddresses.of(["127.0.0.1"]), now_ms or system._clock.now_ms
    return Accounts(system._store.read, system._writer.perform, now_ms, (bytes.fromhex(KEY),), allowed)


def every_byte(database: str) -> bytes:
    """Every byte of a database: of its file, or of its tables."""
    if database.startswith("sqlite"):
        path = Path(database.removeprefix("sqlite:///"))
        return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name))
    with psycopg.connect(database) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        texts = [connection.execute(f'SELECT t::text FROM "{name}" t').fetchall() for (name,) in tables]
    return str(texts).encode()


def hidden(database: str) -> bool:
    """Whether no secret of the server is in a database."""
    dump = every_byte(database)
    assert URL.encode() in dump or b"mcp" in dump
    return CANARY.encode() not in dump and CANARY.encode().hex().encode() not in dump
