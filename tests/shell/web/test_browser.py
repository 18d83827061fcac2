"""``ikigai serve`` in a real browser: type, fork, navigate, interrupt, reload, and no request to anywhere else."""

import asyncio
from pathlib import Path

import pytest

from tests.kit.chromium import CHROMIUM, chromium_page
from tests.kit.program import PATIENCE, Program


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium, or name one by $CHROMIUM")
def test_the_page_is_the_shell_and_asks_for_nothing_elsewhere(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    database = ("--database", str(tmp_path / "tea.db"), "--model", "offline:0.05")
    with Program.by_pipe(*database, "serve", notices=True) as program:
        link = program.expect(r"http://127\.0\.0\.1:\d+/\?token=\S+").group()
        asyncio.run(asyncio.wait_for(play(CHROMIUM, link, program.process.pid), PATIENCE))


async def play(chromium: str, link: str, server: int) -> None:
    async with chromium_page(chromium) as page:
        await page.open(link)
        await page.expect(rf"attached to pid {server}")
        await page.until("document.body.matches('.-first-byte')")
        await page.until("document.activeElement.matches('textarea.xterm-helper-textarea')")
        await page.type("Our shop sells tea.")
        await page.press("Enter")
        await page.expect("You said")
        await page.call("Page.reload")
        await page.expect(r"[1-9][\d.k]* in")  # what was spent before the reload is counted
        await page.until("document.activeElement.matches('textarea.xterm-helper-textarea')")
        await page.type("/fork --name young --model offline:slow")
        await page.press("Enter")
        await page.expect("inherited")
        await page.until("document.title === 'young · ikigai'")
        await page.press("F3")
        await page.expect("└─ ○ young")
        await page.press("F3")
        await page.type("Speak slowly.")
        await page.press("Enter")
        working = "(in a turn|answering)"
        await page.expect(f"(?s){working}.*You said “Speak|You said “Speak.*{working}")  # it comes before it is whole
        await page.press("Escape")
        await page.expect("interrupted")
        base = link.partition("?")[0]
        assert await page.shows("location.href") == base
        elsewhere = [url for url in page.asked if not url.startswith((base, base.replace("http", "ws"), "data:"))]
        assert not elsewhere, elsewhere
        assert not page.problems, page.problems
        await page.press("d", control=True)
        await page.until("document.body.matches('.-closed')")
