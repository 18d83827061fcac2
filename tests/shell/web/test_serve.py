"""The shell in a browser: the real server, spoken to as a browser would, and as an attacker would."""

import asyncio
import json
import os
import re
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from tests.kit.databases import eventually
from tests.kit.program import PATIENCE, Program, run

pytestmark = pytest.mark.slow("serves pages")

Play = Callable[[aiohttp.ClientSession, str, str], Awaitable[None]]
"""What a test does with a browser that has no cookies yet, the link, and the server's address."""


def served(directory: Path, *options: str) -> Program:
    database = str(directory / "tea.db")
    return Program.by_pipe("--database", database, "--model", "offline", *options, "serve", notices=True)


def visit(program: Program, play: Play) -> None:
    """Open a browser's session beside a server, once that has told its link."""
    link = program.expect(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}").group()

    async def main() -> None:
        jar = aiohttp.CookieJar(unsafe=True)  # also for addresses that are numbers
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            await play(browser, link, link.partition("/?")[0])

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


async def status(browser: aiohttp.ClientSession, url: str, **headers: str) -> int:
    async with browser.get(url, headers=headers) as answer:
        return answer.status


class Page:
    """A page, as its WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._drawn = socket, ""

    async def expect(self, pattern: str) -> None:
        """Wait until this is drawn."""
        while re.search(pattern, self._drawn) is None:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:  # the title of the page
                continue
            assert message.type is aiohttp.WSMsgType.BINARY, f"The page ended without {pattern!r}: {self._drawn}"
            self._drawn += message.data.decode()

    async def type(self, text: str) -> None:
        """Press these keys."""
        await self._socket.send_str(json.dumps(["stdin", text]))


@pytest.mark.thorough("pages in a browser's stead; every run has the door of the server")
def test_pages_are_attached_to_the_server_see_one_another_and_end_with_it(tmp_path: Path) -> None:
    async def play(browser: aiohttp.ClientSession, link: str, base: str) -> None:
        async with browser.get(link) as answer:
            assert (answer.status, str(answer.url)) == (200, f"{base}/")
            text = await answer.text()
        assert set(re.findall(r"\w+://[^\"'\s)]+", text)) == {
            f"{base}/static/css/xterm.css",
            f"{base}/static/js/textual.js",
            f"{base}/static/fonts/RobotoMono-VariableFont_wght.ttf",
            f"{base.replace('http', 'ws')}/ws",
        }
        async with (
            browser.ws_connect(f"{base}/ws?width=100&height=30", origin=base) as first,
            browser.ws_connect(f"{base}/ws?width=90&height=24", origin=base) as second,
        ):
            pages = Page(first), Page(second)
            for page in pages:
                await page.expect(rf"attached to pid {program.process.pid}")
            await pages[0].type("Our shop sells tea.\r")
            for page in pages:
                await page.expect("You said")
            await pages[1].type('@wait {"timeout": 600}\r')
            for page in pages:
                await page.expect("waits|in a turn")
            program.process.send_signal(signal.SIGINT)
            for socket in (first, second):
                async for message in socket:  # until it is closed
                    assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT)

    with served(tmp_path) as program:
        visit(program, play)
        assert program.ends() == 130
        assert "Ending: 2 open pages." in program.said
        assert "Leaving a turn in progress" in program.said
        assert "Traceback" not in program.said
        assert re.search(r"ikigai .* 1 running, 0 dead", program.said)
    assert "interrupted" in run("--database", str(tmp_path / "tea.db"), "agents").stdout


def test_nobody_gets_in_without_the_link_from_elsewhere_or_under_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(browser: aiohttp.ClientSession, link: str, base: str) -> None:
        port = base.rpartition(":")[2]
        for path in ("/", "/?token=wrong", "/static/js/textual.js", "/page.js", "/ws", "/download/x"):
            assert await status(browser, base + path) == (403 if path == "/ws" else 401), path  # it names no origin
        for headers in ({"Host": f"evil.example:{port}"}, {"Host": "127.0.0.1"}, {"Origin": "http://evil.example"}):
            assert await status(browser, link, **headers) == 403, headers
        assert len(browser.cookie_jar) == 0
        async with browser.get(link, allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"]
            assert (answer.status, answer.headers["Location"]) == (303, "/")
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert link.partition("token=")[2] not in cookie
        async with browser.get(f"{base}/") as answer:
            rules = answer.headers
            assert answer.status == 200
            assert "default-src 'none'" in rules["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in rules["Content-Security-Policy"]
            assert (rules["Referrer-Policy"], rules["Cache-Control"]) == ("no-referrer", "no-store")
        for script in ("/static/js/textual.js", "/page.js"):
            assert await status(browser, base + script) == 200
        for listing in ("/static", "/static/", "/static/js", "/static/js/"):
            assert await status(browser, base + listing) in (403, 404), listing
        for origin in (None, "http://evil.example", f"http://localhost:{port}", "null"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await browser.ws_connect(f"{base}/ws", origin=origin)
            assert refused.value.status == 403
        assert await status(browser, f"{base}/", Origin="http://evil.example") == 403
        assert await status(browser, f"{base}/", Host=f"evil.example:{port}") == 403

    with served(tmp_path) as program:
        visit(program, play)
        port = int(re.findall(r"127\.0\.0\.1:(\d+)", program.said)[0])
        with socket.socket() as elsewhere:  # no other address than loopback
            assert elsewhere.connect_ex(("127.0.0.2", port)) != 0
        monkeypatch.setenv("IKIGAI_DATABASE_URL", str(tmp_path / "other.db"))
        done = run("serve", "--port", str(port))
        assert (done.stdout, done.returncode) == ("", 1)
        assert f"ikigai: Port {port} is not available" in done.stderr


@pytest.mark.thorough("programs; pages are attached to the server in each run")
def test_a_page_that_is_closed_or_whose_server_is_killed_leaves_no_process(tmp_path: Path) -> None:
    def pages() -> list[str]:
        names = []
        for place in Path("/proc").glob("[0-9]*/environ"):
            try:
                variables, command = place.read_bytes(), (place.parent / "cmdline").read_bytes()
            except OSError:  # it has ended meanwhile, or is somebody else's
                continue
            if os.fsencode(tmp_path / "tea.db") in variables and command.endswith(b"page\0"):
                names.append(place.parent.name)
        return names

    async def play(browser: aiohttp.ClientSession, link: str, base: str) -> None:
        assert await status(browser, link) == 200
        async with browser.ws_connect(f"{base}/ws", origin=base) as first:
            await Page(first).expect("attached to pid")
            assert len(pages()) == 1
        while pages():  # its end is not told
            await asyncio.sleep(0.05)
        async with browser.ws_connect(f"{base}/ws", origin=base) as second:
            await Page(second).expect("attached to pid")
            assert len(pages()) == 1
            program.kill()

    with served(tmp_path) as program:
        visit(program, play)
        eventually(lambda: not pages(), "the end of the page")


@pytest.mark.thorough("programs; pages are attached to the server in each run")
def test_a_server_beside_a_running_shell_serves_its_agents(tmp_path: Path) -> None:
    async def play(browser: aiohttp.ClientSession, link: str, base: str) -> None:
        assert await status(browser, link) == 200
        async with browser.ws_connect(f"{base}/ws?width=100", origin=base) as socket:
            page = Page(socket)
            await page.expect(rf"attached to pid {shell.process.pid}")
            shell.say("tea")
            await page.expect("You said")
            await page.type("/doc write plan\r")
            await page.expect("an editor needs a terminal")

    with Program.by_pipe("--database", str(tmp_path / "tea.db"), "--model", "offline") as shell:
        shell.say("/agents")
        shell.expect("running")
        with served(tmp_path) as program:
            visit(program, play)
