"""The observer's page in a real browser: the tree, keys, hostile text, the past, a fork, and nothing from elsewhere."""

import asyncio

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.sight import Observer, observe
from tests.kit.chromium import CHROMIUM, ChromiumPage, chromium_page
from tests.kit.program import PATIENCE

pytestmark = pytest.mark.slow("a browser")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium, or name one by $CHROMIUM")
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
        assert child.record.fork_message_id < max(one.id for one in system.agent("ann").history(all=True))
        await press(page, "/")
        await page.shows("document.getElementById('find').value = 'ann'")
        await page.shows("document.getElementById('find').dispatchEvent(new Event('input'))")
        await page.until("document.querySelectorAll('.row:not([hidden])').length === 2")
        await page.shows("document.getElementById('theme').click()")
        assert not page.problems, page.problems
        base = observer.link.partition("?")[0]
        assert [url for url in page.asked if not url.startswith((base, "data:"))] == []


async def rows(page: ChromiumPage) -> object:
    return await page.shows("document.querySelectorAll('[role=row]:not([hidden])').length")


def row_says(place: int, text: str) -> str:
    return f"document.querySelectorAll('[role=row]')[{place}].getAttribute('aria-label') === '{text}'"


async def press(page: ChromiumPage, key: str) -> None:
    await page.shows(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))")
