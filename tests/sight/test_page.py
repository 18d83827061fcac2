"""The observer's page in a real browser: the tree, keys, hostile text, the past, a fork, and nothing from elsewhere."""

import asyncio
import json

import pytest

from ikigai_actors import ActorSystem, AgentRef, OfflineProvider, Reply, ToolCall, tool
from ikigai_actors.sight import Observer, observe
from ikigai_actors.system.approvals import person
from tests.kit.blocking_provider import Speaker
from tests.kit.chromium import CHROMIUM, ChromiumPage, chromium_page
from tests.kit.databases import eventually
from tests.kit.program import PATIENCE

pytestmark = [
    pytest.mark.slow("a browser"),
    pytest.mark.skipif(
        CHROMIUM is None, reason="there is no Chromium: apt-get install chromium, or name one by $CHROMIUM"
    ),
]


def test_the_page_shows_what_agents_do_and_did_and_forks_from_any_moment() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system, observe(system) as observer:
        ann = system.root.fork(name="ann")
        ann.prompt("<img src=x onerror=alert(1)> first").get(timeout=PATIENCE)
        asyncio.run(asyncio.wait_for(look(system, observer), PATIENCE))


async def look(system: ActorSystem, observer: Observer) -> None:
    assert CHROMIUM is not None
    async with chromium_page(CHROMIUM) as page:
        await page.open(observer.link)
        await page.until("document.documentElement.dataset.ready === '1'")
        assert await rows(page) == 2
        await page.until(row_says(1, "ann, idle"))
        await press(page, "j")
        await page.until("document.getElementById('who').textContent === 'ann'")
        await page.until("document.getElementById('talk').textContent.includes('onerror=alert(1)> first')")
        assert await page.shows("document.querySelectorAll('#talk img').length") == 0
        await page.shows("document.getElementById('text').value = 'second'; document.getElementById('send').click()")
        await page.until("document.querySelectorAll('.m.assistant').length === 2")
        await page.until("document.getElementById('who-sign').className === 's-idle'")
        await press(page, "[")  # the second reply
        await page.until("document.body.classList.contains('past')")
        await press(page, "[")  # its prompt
        await page.until("document.querySelectorAll('.m.assistant').length === 1")
        await press(page, "f")
        await page.until("!document.body.classList.contains('past')")
        await page.until("document.querySelectorAll('.row:not([hidden])').length === 3")
        [child] = (await asyncio.to_thread(system.agent, "ann")).children()
        assert child.record.fork_message_id < max(message.id for message in system.agent("ann").history(all=True))
        await press(page, "/")
        await page.shows("document.getElementById('find').value = 'ann'")
        await page.shows("document.getElementById('find').dispatchEvent(new Event('input'))")
        await page.until("document.querySelectorAll('.row:not([hidden])').length === 2")
        await page.shows("document.getElementById('theme').click()")
        assert not page.problems, page.problems
        base = observer.link.partition("?")[0]
        assert [url for url in page.asked if not url.startswith((base, "data:"))] == []


@tool(policy="ask")
def launch(what: str) -> str:
    """Launch."""
    return f"launched {what}"


TRIP = {
    "type": "object",
    "properties": {
        "seats": {"type": "integer", "minimum": 1},
        "class": {"type": "string", "enum": ["first", "second"]},
        "price": {"type": "number", "enum": [9.5, 20]},
        "window": {"type": "boolean"},
        "note": {"type": "string"},
    },
    "required": ["seats"],
}


@pytest.mark.thorough("a third play of the page in Chromium")
def test_the_inbox_shows_what_waits_for_a_person_and_takes_the_answers() -> None:
    speaker = Speaker()
    with (
        ActorSystem.open(":memory:", speaker, tools=[launch], approvals="ask") as system,
        observe(system) as observer,
    ):
        ann, bob = system.root.fork(name="ann"), system.root.fork(name="bob")
        turns = [ann.prompt("go")]
        asks = ToolCall("ask_person", {"question": "<b>Which seats?</b>", "form": TRIP}, "a")
        speaker.say(Reply(tool_calls=(asks,)))
        turns.append(bob.prompt("go"))
        speaker.say(Reply(tool_calls=(ToolCall("launch", {"what": "<i>tea</i>"}, "b"),)))
        eventually(lambda: len(system.questions.pending()) == 2, "both questions")
        asyncio.run(asyncio.wait_for(answer_both(observer), PATIENCE))
        for _ in turns:
            speaker.say("done", None)
        assert [turn.get(timeout=PATIENCE).text for turn in turns] == ["done", "done"]
        results = [message for agent in (ann, bob) for message in agent.history() if message.kind == "tool_result"]
        assert json.loads(results[0].content) == {"seats": 2, "class": "second", "price": 9.5, "window": False}
        assert results[1].content == "launched <i>tea</i>"


async def answer_both(observer: Observer) -> None:
    """Answer ann's question in the inbox and bob's call by a key."""
    assert CHROMIUM is not None
    async with chromium_page(CHROMIUM) as page:
        await page.open(observer.link)
        await page.until("document.documentElement.dataset.ready === '1'")
        await page.until("document.getElementById('asked').textContent === '? 2 in the inbox'")
        await press(page, "i")
        await page.until("document.querySelectorAll('#panel .asks').length === 2")
        assert await page.shows("document.getElementById('question').hidden")
        boxes = "[...document.querySelectorAll('#panel .asks')]"
        asks = f"{boxes}.find(box => box.querySelector('h3').textContent === '? ann asks')"
        call = f"{boxes}.find(box => box.querySelector('h3').textContent === '? bob asks: launch')"
        assert await page.shows(f"{asks}.querySelector('pre').textContent") == "<b>Which seats?</b>"
        assert "<i>tea</i>" in await page.shows(f"{call}.querySelector('pre').textContent")
        assert "role:approve" in await page.shows(f"{asks}.querySelector('.terms').textContent")
        for name, value in (("seats", "0"), ("class", "second"), ("price", "9.5"), ("window", "no")):
            await page.shows(f"{asks}.querySelector('[name={name}]').value = '{value}'")
        answer = f"{asks}.querySelector('button[type=submit]').click()"
        await page.shows(answer)
        await page.until(f"{asks}.querySelector('.wrong').textContent.includes('seats')")
        await page.shows(f"{asks}.querySelector('[name=seats]').value = '2'")
        await page.shows(answer)
        await page.until("document.querySelectorAll('#panel .asks').length === 1")
        await page.shows("document.querySelector('[data-panel=talk]').click()")
        await page.until("!document.getElementById('question').hidden")
        await press(page, "y")
        await page.until("document.getElementById('asked').hidden")
        assert [
            problem for problem in page.problems if "status of 400" not in problem
        ] == []  # that one was the answer of 0 seats


@pytest.mark.thorough("a second play of the page in Chromium")
def test_a_moment_stays_as_it_was_while_agents_work_and_says_nothing_of_today() -> None:
    speaker = Speaker()
    with (
        ActorSystem.open(":memory:", speaker, tools=[launch], approvals="ask") as system,
        observe(system) as observer,
    ):
        ann = system.root.fork(name="ann")
        system.root.fork(name="kid")  # which never has a turn
        first = ann.prompt("go")
        speaker.say("**Assam** first, see [the list](https://tea.example).\n\n- one\n- <b>two</b>", None)
        first.get(timeout=PATIENCE)
        asyncio.run(asyncio.wait_for(look_back(ann, observer, speaker), PATIENCE))


async def look_back(ann: AgentRef, observer: Observer, speaker: Speaker) -> None:
    assert CHROMIUM is not None
    async with chromium_page(CHROMIUM) as page:
        await page.open(observer.link)
        await page.until("document.documentElement.dataset.ready === '1'")
        await press(page, "j")
        await page.until("document.getElementById('who').textContent === 'ann'")
        second = await asyncio.to_thread(ann.prompt, "and now?")
        await asyncio.to_thread(speaker.say, "half of it")
        await page.until("document.getElementById('talk').textContent.includes('half of it')")
        assert await page.shows("document.querySelector('.md strong').textContent") == "Assam"
        assert await page.shows("document.querySelector('.md').textContent.includes('the list (https://tea.example)')")
        assert await page.shows("[...document.querySelectorAll('.md li')].map(one => one.textContent).join()") == (
            "one,<b>two</b>"
        )
        for _ in range(2):  # before the second prompt, and at the first reply
            await press(page, "[")
        await page.until("document.querySelectorAll('.m.user').length === 1")
        await page.until(row_says(1, "ann, idle"))
        await page.until(row_says(2, "kid, idle"))
        past = (
            "[document.body.classList.contains('past'), document.getElementById('time').value < 10000,"
            " document.getElementById('time').getAttribute('aria-valuetext') !== 'now',"
            " document.getElementById('counts').textContent, document.getElementById('who-sign').textContent,"
            " document.getElementById('facts').textContent, document.querySelectorAll('.m').length,"
            " [...document.querySelectorAll('.num')].map(one => one.textContent).join('')].join()"
        )
        seen = "true,true,true,3 lived,○,idle,3,"
        await page.until(f"{past} === '{seen}'")
        call = ToolCall("launch", {"what": "tea"}, "call_1")
        await asyncio.to_thread(speaker.say, " and the rest", Reply(tool_calls=(call,)))
        await page.until("!document.getElementById('asked').hidden")  # what came with it has come
        assert await page.shows("document.getElementById('asked').textContent") == "? 1 call asks"
        assert await page.shows(past) == seen
        await press(page, "]")
        await page.until("document.querySelectorAll('.m.user').length === 2")
        await page.until(row_says(1, "ann, thinking"))
        address = await page.shows("location.href")
        await page.open("about:blank")
        await page.open(str(address))
        await page.until("document.documentElement.dataset.ready === '1'")
        await page.until(f"{past} === 'true,true,true,3 lived,◐,thinking,4,'")
        await press(page, "l")
        await page.until("document.querySelectorAll('.m').length === 6")
        await press(page, "y")
        await page.until("document.getElementById('talk').textContent.includes('approved · launch · by ')")
        facts = "[...document.querySelectorAll('.m.approval, .m.tool_call')].map(one => one.textContent).join()"
        shown = str(await page.shows(facts))
        assert all(part in shown for part in ("asks · launch", '{"what":"tea"}', person())), shown
        await asyncio.to_thread(speaker.say, None)
        await asyncio.to_thread(second.get, timeout=PATIENCE)
        await fits(page)
        assert not page.problems, page.problems


async def fits(page: ChromiumPage) -> None:
    """On a telephone nothing is cut off, and a finger finds a moment on the slider."""
    await page.call("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=True)
    await page.until("innerWidth === 420 && document.getElementById('time').getBoundingClientRect().width > 300")
    within = "one => one.getBoundingClientRect().right <= 420.5 || one.closest('#scroll, #talk pre')"
    cut = (
        f"[...document.querySelectorAll('body *')].filter(one => !({within})(one)).map(one => one.id || one.className)"
    )
    assert await page.shows(f"{cut}.join()") == ""


async def rows(page: ChromiumPage) -> object:
    return await page.shows("document.querySelectorAll('[role=row]:not([hidden])').length")


def row_says(place: int, text: str) -> str:
    return f"document.querySelectorAll('[role=row]')[{place}].getAttribute('aria-label') === '{text}'"


async def press(page: ChromiumPage, key: str) -> None:
    await page.shows(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))")
