"""A headless Chromium that a test drives by the DevTools protocol, over aiohttp: it needs no driver of its own.

async with chromium_page(CHROMIUM) as page:
    await page.open(url)
    await page.type("Our shop sells tea.")
    await page.press("Enter")
"""

import asyncio
import base64
import contextlib
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import pytest

from tests.kit.program import PATIENCE

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
"""The browser, if there is one."""

_KEYS = {"Enter": 13, "Escape": 27, "F3": 114, "d": 68}
_CONTROL = 2
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
    "--window-size=900,700",
)  # fmt: skip


class ChromiumPage:
    """One page: what it is sent over WebSockets, what it asks for, and what goes wrong in it."""

    def __init__(self, devtools: aiohttp.ClientWebSocketResponse) -> None:
        self._devtools, self._numbers = devtools, count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._changed = asyncio.Event()
        self._session: str | None = None
        self.drawn = ""
        self.asked: list[str] = []
        self.problems: list[str] = []

    async def listen(self) -> None:
        """Take what the browser tells, until it ends."""
        async for message in self._devtools:
            message_in = message.json()
            if "id" in message_in:
                self._waiting.pop(message_in["id"]).set_result(message_in)
            else:
                self._note(message_in["method"], message_in["params"])
                self._changed.set()

    def _note(self, method: str, details: dict[str, Any]) -> None:
        match method:
            case "Network.webSocketFrameReceived" if details["response"]["opcode"] == 2:
                sent = base64.b64decode(details["response"]["payloadData"]).decode()
                self.drawn += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", sent)
            case "Network.requestWillBeSent":
                self.asked.append(details["request"]["url"])
            case "Network.webSocketCreated":
                self.asked.append(details["url"])
            case "Runtime.exceptionThrown":
                self.problems.append(str(details["exceptionDetails"]))
            case "Log.entryAdded" if details["entry"]["level"] == "error":
                self.problems.append(str(details["entry"]))

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call the browser, of this page once there is one."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        session = {} if self._session is None else {"sessionId": self._session}
        await self._devtools.send_json({"id": number, "method": method, "params": parameters, **session})
        reply = await answer
        assert "error" not in reply, (method, reply)
        result: dict[str, Any] = reply["result"]
        return result

    async def begin(self) -> None:
        """Make the page."""
        made = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for part in ("Network", "Runtime", "Log", "Page"):
            await self.call(f"{part}.enable")

    async def open(self, url: str) -> None:
        """Go to an address."""
        await self.call("Page.navigate", url=url)

    async def shows(self, expression: str) -> Any:
        """The value of an expression in the page."""
        value = await self.call("Runtime.evaluate", expression=expression)
        return value["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression is true in the page."""
        while not await self.shows(expression):
            await self.call("Runtime.evaluate", expression="new Promise(requestAnimationFrame)", awaitPromise=True)

    async def expect(self, pattern: str) -> None:
        """Wait until this is sent to the page, after what was expected before."""
        while (match := re.search(pattern, self.drawn)) is None:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), PATIENCE)
            except TimeoutError:
                pytest.fail(f"Not shown: {pattern!r}: {self.drawn[-3000:]!r} {self.problems}")
        self.drawn = self.drawn[match.end() :]

    async def type(self, text: str) -> None:
        """Type a text."""
        for letter in text:
            await self.call("Input.dispatchKeyEvent", type="char", text=letter)

    async def press(self, key: str, *, control: bool = False) -> None:
        """Press a key, and let it go."""
        what = {"key": key, "windowsVirtualKeyCode": _KEYS[key], "modifiers": _CONTROL if control else 0}
        text = {"text": "\r"} if key == "Enter" else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **what, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **what)


async def drained(stream: asyncio.StreamReader) -> None:
    """Read what comes, so that nobody waits for room."""
    while await stream.read(65_536):
        pass


@asynccontextmanager
async def chromium_page(chromium: str) -> AsyncIterator[ChromiumPage]:
    """A page of a browser that ends with the block."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
        process = await asyncio.create_subprocess_exec(
            chromium, *_OPTIONS, f"--user-data-dir={home}", stderr=asyncio.subprocess.PIPE, start_new_session=True
        )
        try:
            assert process.stderr is not None
            said = b""
            while (match := re.search(rb"DevTools listening on (ws://\S+)", said)) is None:
                line = await process.stderr.readline()
                assert line, f"Chromium does not begin: {said.decode(errors='replace')}"
                said += line
            async with (
                aiohttp.ClientSession() as client,
                client.ws_connect(match[1].decode(), max_msg_size=0) as devtools,
                asyncio.TaskGroup() as meanwhile,
            ):
                page = ChromiumPage(devtools)
                tasks = [meanwhile.create_task(page.listen()), meanwhile.create_task(drained(process.stderr))]
                await page.begin()
                yield page
                for task in tasks:
                    task.cancel()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its helpers too
            await process.wait()
