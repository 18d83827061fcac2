"""Signed links: whoever has one is shown one question, and answers it once."""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from ikigai_actors import ActorSystem, BadInput, Signal
from ikigai_actors.api import AttachedSystem, api
from ikigai_actors.records.questions.links import LINK_MS, opened_link, operator_key, signed_link
from ikigai_actors.system.questions import WaitingQuestion
from ikigai_actors.tools.function import tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.tool_scripts import calling, scripted

KEY, OTHER_KEY = "a1" * 32, "b2" * 32
TRIP = {
    "type": "object",
    "properties": {
        "seats": {"type": "integer", "minimum": 1},
        "class": {"type": "string", "enum": ["first", "second"]},
        "window": {"type": "boolean"},
        "<b>note</b>": {"type": "string"},
    },
    "required": ["seats"],
}

Page = tuple[int, str]


def asks(**arguments: Any) -> tuple[str, dict[str, Any]]:
    return ("ask_person", {"question": "Which <seats>?", **arguments})


class Door:
    """A host that asks, and an application behind a proxy that cuts a path off."""

    def __init__(self, host: ActorSystem, system: AttachedSystem, keys: list[str]) -> None:
        self.host, self.system = host, system
        self.api = api(system, lambda request: None, keys=keys)

    def waiting(self) -> WaitingQuestion:
        eventually(lambda: len(self.system.questions.pending()) == 1, "the question")
        return self.system.questions.pending()[0]

    def link(self, question: str, key: str = KEY, within: int = LINK_MS) -> str:
        return signed_link(operator_key(key), question, self.system._clock.now_ms() + within)

    def get(self, link: str) -> Page:
        return self._ask(lambda client: client.get(f"/agents/q/{link}"))

    def post(self, link: str, **fields: str) -> Page:
        return self._ask(lambda client: client.post(f"/agents/q/{link}", data=fields))

    def answer(self, link: str, decide: str = "answer", **fields: str) -> Page:
        """Send the form of the page that the link shows, filled in."""
        _, page = self.get(link)
        digest = re.search(r"name='digest' value='(\w+)'", page)
        return self.post(link, decide=decide, digest=digest[1] if digest else "", **fields)

    def _ask(self, ask: Callable[[httpx2.AsyncClient], Any]) -> Page:
        async def main() -> Page:
            transport = httpx2.ASGITransport(app=Starlette(routes=[Mount("/agents", self.api)]))
            async with httpx2.AsyncClient(transport=transport, base_url="https://x", timeout=60) as client:
                got = await ask(client)
                assert got.headers["content-type"].startswith("text/html")
                assert got.headers["referrer-policy"] == "no-referrer"
                [policy] = got.headers.get_list("content-security-policy")  # a browser obeys each of several
                assert "form-action 'self'" in policy
                return got.status_code, got.text

        return asyncio.run(main())


@contextmanager
def door_of(database: str, monkeypatch: pytest.MonkeyPatch, *replies: Any, tools: Any = ()) -> Iterator[Door]:
    monkeypatch.setenv("LINK_KEY", KEY)
    with (
        ActorSystem.open(database, scripted([*replies]), tools=list(tools), approvals="ask") as host,
        AttachedSystem.open(database) as system,
    ):
        door = Door(host, system, ["env:LINK_KEY"])
        try:
            yield door
        finally:
            door.api.close()


def test_a_link_shows_the_form_and_takes_one_answer(durable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with door_of(durable, monkeypatch, calling(asks(form=TRIP)), "booked") as door:
        reply = door.host.root.prompt("book")
        link = door.link(door.waiting().id)
        for _ in range(3):
            status, page = door.get(link)
            assert (status, page.count("<b>note")) == (200, 0)
            assert "Which <seats>?" in unescape(page)
        assert door.waiting().row.is_open
        assert door.answer(link, **{"field:seats": "none"})[0] == 400
        assert door.answer(link, **{"field:seats": "0"})[0] == 400
        assert door.answer(link, "allow")[0] == 400
        filled = {"field:seats": "2", "field:class": "first", "field:window": "no", "field:<b>note</b>": "a\r\nb"}
        assert door.answer(link, **filled)[0] == 200
        assert reply.get(timeout=DEADLINE).text == "booked"
        [result] = [message for message in door.host.root.history() if message.kind == "tool_result"]
        assert result.data["answer"] == {"seats": 2, "class": "first", "window": False, "<b>note</b>": "a\nb"}
        assert re.fullmatch(r"link:[0-9a-f]{8}", result.data["by"])
        status, page = door.answer(link, **filled)
        assert (status, f"answered by {result.data['by']}" in page) == (410, True)


def test_a_call_is_allowed_or_denied_by_a_link_and_shown_whole(durable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    paid: list[int] = []

    @tool(policy="ask")
    def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    calls = calling(("pay", {"amount": 3})), calling(("pay", {"amount": 4})), "done"
    with door_of(durable, monkeypatch, *calls, tools=[pay]) as door:
        reply = door.host.root.prompt("go")
        first = door.waiting()
        status, page = door.get(door.link(first.id))
        assert (status, '"amount": 3' in unescape(page), first.digest[:16] in page) == (200, True, True)
        shown_otherwise = door.post(door.link(first.id), decide="allow", digest="0" * 64)
        assert (shown_otherwise[0], first.row.is_open, paid) == (409, True, [])
        assert door.answer(door.link(first.id), "allow")[0] == 200
        eventually(
            lambda: [question.id for question in door.system.questions.pending()] not in ([], [first.id]), "the next"
        )
        assert door.answer(door.link(door.waiting().id), "deny", reason="too much")[0] == 200
        reply.get(timeout=DEADLINE)
        last = [message.content for message in door.host.root.history() if message.kind == "tool_result"][-1]
        assert (paid, last) == ([3], "This call was denied: too much")


def test_no_other_link_answers(durable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with door_of(durable, monkeypatch, calling(asks()), "done") as door:
        door.host.root.prompt("go")
        question = door.waiting().id
        good = door.link(question)
        body, _, signature = good.rpartition(".")
        later = f"{question}.{int(body.partition('.')[2]) + 1}.{signature}"
        foreign = door.link(question, OTHER_KEY)
        for link in (foreign, later, body, f"{good}x", "ü.1.ü"):
            status, page = door.get(link)
            assert (status, "not valid" in page) == (404, True)
        assert door.post(foreign, decide="answer", **{"field:": "yes"})[0] == 404
        expired = door.link(question, within=-1_000)
        assert "expired" in door.get(expired)[1]
        assert door.answer(expired, **{"field:": "yes"})[0] == 410
        assert door.get(door.link("0" * 24))[0] == 404
        assert door.waiting().row.is_open
        door.host.root.signal(Signal.INT)
        eventually(lambda: not door.system.questions.pending(), "the end of the wait")
        assert door.answer(good, **{"field:": "yes"})[0] == 410


def test_an_application_without_a_key_takes_no_link_and_a_key_must_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with door_of(str(tmp_path / "a.db"), monkeypatch, calling(asks()), "done") as door:
        door.host.root.prompt("go")
        link = door.link(door.waiting().id)
        monkeypatch.setenv("SHORT_KEY", "abc")
        for reference, wrong in (("env:NO_KEY", "not there"), ("abc", "env:NAME"), ("env:SHORT_KEY", "openssl")):
            with pytest.raises(BadInput, match=wrong):
                api(door.system, lambda request: None, keys=[reference])
        bare = Door(door.host, door.system, [])
        assert bare.get(link)[0] == 404
        bare.api.close()


def test_a_link_is_in_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), door_of(str(tmp_path / "a.db"), monkeypatch, calling(asks()), "done") as door:
        reply = door.host.root.prompt("go")
        link = door.link(door.waiting().id)
        door.get(link)
        door.answer(link, **{"field:": "yes"})
        reply.get(timeout=DEADLINE)
        said = [record.getMessage() for record in caplog.records if record.name.startswith(("ikigai", "uvicorn"))]
        assert not [line for line in said if link.rpartition(".")[2] in line]
        assert link.rpartition(".")[2] not in str([message.data for message in door.host.root.history()])


def test_a_link_holds_for_the_key_of_its_use_alone() -> None:
    key = operator_key(KEY)
    link = signed_link(key, "6b3e", 1_796_574_493_000)
    opened = opened_link([operator_key(OTHER_KEY), key], link)
    assert opened is not None
    assert (opened.question, opened.expires_at) == ("6b3e", 1_796_574_493_000)
    assert opened_link([], link) is None
    assert opened_link([operator_key(OTHER_KEY)], link) is None
