"""The server: textual-serve on loopback, with a guard.

    serve_pages("team.db", 8000, print, print)     # until SIGINT, SIGTERM or SIGHUP

The port is bound first, because the pages need it, and so that no other program can take it meanwhile.
textual-serve starts a process for each page through a shell, and ends it when the page is closed.
"""

import asyncio
import json
import logging
import shlex
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp_jinja2
import jinja2
from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from ikigai_actors.http_server.acceptor import ConnectionLimits, listen
from ikigai_actors.http_server.guard import TERMINAL_POLICY, PageGuard
from ikigai_actors.shell.web.serving import serving_terminals
from ikigai_actors.sight.served_pages import published

_KEPT = 60.0
"""Seconds for which a browser's connection is kept between two requests."""

_ENDING = 0.4
"""Seconds that pages and browsers get to end when the server ends."""

LOOPBACK = "127.0.0.1"

TEMPLATES = Path(__file__).parent / "templates"


class ServedPage(AppService):
    """The process that runs one page of ``ikigai serve``."""

    async def on_meta(self, data: bytes) -> None:
        """Handle a request of the page's process. The page's title is sent to `templates/page.js`."""
        asked = json.loads(data)
        if asked["type"] == "title":
            await self.remote_write_str(json.dumps(["title", asked["title"]]))
        else:
            await super().on_meta(data)

    async def stop(self) -> None:
        """End the process, and wait until it has ended."""
        await super().stop()
        if self._process is not None:
            await self._process.wait()

    async def end_within(self, seconds: float) -> None:
        """End the process within a time, or kill it. A kill harms nothing, because the process runs no agents."""
        # Not by a time-out, which cancels the page's own task: that takes the cancellation for its end, and returns.
        ending = asyncio.create_task(self.stop())
        await asyncio.wait([ending], timeout=seconds)
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        if self._task is not None:
            self._task.cancel()
        await ending


class Pages(Server):
    """Serves pages of the application, each a process that is attached to the database of the environment."""

    def __init__(self, port: int) -> None:
        """Prepare the server; ``port`` is part of the pages' addresses."""
        page = shlex.join([sys.executable, "-m", "ikigai_actors", "page"])
        super().__init__(f"exec {page}", LOOPBACK, port, "ikigai", templates_path=TEMPLATES)
        self._open: set[ServedPage] = set()

    def __len__(self) -> int:
        return len(self._open)

    async def make_app(self) -> web.Application:
        """Return the aiohttp application: the handlers of textual-serve, without a list of its files."""
        app = web.Application()
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(self.templates_path), autoescape=True)
        app.add_routes(
            [
                web.get("/", self.handle_index, name="index"),
                web.get("/page.js", self._handle_script),
                web.get("/ws", self.handle_websocket, name="websocket"),
                web.get("/download/{key}", self.handle_download, name="download"),
                web.static("/static", self.statics_path, name="static"),
            ]
        )
        app.on_shutdown.append(self._end_pages)
        return app

    async def _end_pages(self, app: web.Application) -> None:
        await asyncio.gather(*(page.end_within(_ENDING) for page in tuple(self._open)))

    async def _handle_script(self, request: web.Request) -> web.FileResponse:
        """Answer with the script that focuses the terminal and sets the page's title."""
        return web.FileResponse(TEMPLATES / "page.js")

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a page until its browser disconnects."""
        browser = web.WebSocketResponse(timeout=_ENDING, heartbeat=15)
        await browser.prepare(request)

        async def close() -> None:
            await browser.close()

        page = ServedPage(
            self.command,
            write_bytes=browser.send_bytes,
            write_str=browser.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        self._open.add(page)
        try:
            await page.start(to_int(request.query.get("width", ""), 80), to_int(request.query.get("height", ""), 24))
            await self._process_messages(browser, page)
        finally:
            await page.stop()
            self._open.discard(page)
        return browser


def serve_pages(database: str, port: int, tell: Callable[[str], object], notice: Callable[[str], object]) -> int:
    """Serve until a signal ends it; return the exit status.

    Args:
        database: the location of the database, by which an observer finds the pages.
        port: the port, on loopback; 0 takes a free one.
        tell: called with the link to open.
        notice: called with a line when it ends.

    Raises:
        BadInput: the port cannot be had.
    """
    logging.getLogger("textual-serve").addHandler(logging.NullHandler())
    listening = listen(LOOPBACK, port)
    return asyncio.run(_serve(database, listening, tell, notice))


async def _serve(
    database: str, listening: socket.socket, tell: Callable[[str], object], notice: Callable[[str], object]
) -> int:
    port = listening.getsockname()[1]
    guard = PageGuard(f"{LOOPBACK}:{port}", TERMINAL_POLICY)
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(number: int) -> None:
        if not ended.done():
            ended.set_result(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    pages = Pages(port)
    limits = ConnectionLimits.of_process()
    async with serving_terminals(await pages.make_app(), guard, listening, limits, _ENDING, _KEPT):
        with published("serve", database, guard.link):
            tell(guard.link)
            status = await ended
        notice(f"Ending: {len(pages)} open page{'s' * (len(pages) != 1)}.")
    return status
