"""The process behind a page: it ends in time, also when it does not listen and its browser is stuck."""

import asyncio
import json

from textual_serve.download_manager import DownloadManager

from ikigai_actors.shell.web.server import ServedPage

DEAF = "printf '__GANGLION__\\nD\\0\\0\\0\\1x'; exec sleep 600"
"""A page that draws a letter, and then hears nothing."""


def test_a_page_gets_the_title_that_its_process_names() -> None:
    said: list[str] = []

    async def say(text: str) -> None:
        said.append(text)

    async def never(*_: bytes) -> None:
        raise AssertionError("Nothing is drawn or closed")

    page = ServedPage("", write_bytes=never, write_str=say, close=never, download_manager=DownloadManager())
    asyncio.run(page.on_meta('{"type": "title", "title": "buyer · ikigai"}'.encode()))
    assert [json.loads(line) for line in said] == [["title", "buyer · ikigai"]]


def test_a_page_that_does_not_end_is_killed_though_its_browser_takes_nothing() -> None:
    async def play() -> int | None:
        drawn, never = asyncio.Event(), asyncio.Event()

        async def take(data: bytes) -> None:
            drawn.set()
            await never.wait()

        async def say(text: str) -> None:
            raise AssertionError(f"Nothing is said: {text}")

        async def close() -> None:
            raise AssertionError("Nothing is closed")

        page = ServedPage(DEAF, write_bytes=take, write_str=say, close=close, download_manager=DownloadManager())
        await page.start(80, 24)
        await drawn.wait()
        await page.end_within(0)
        assert page._process is not None
        return page._process.returncode

    assert asyncio.run(play()) == -9
