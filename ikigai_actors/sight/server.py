"""The server of the page, by aiohttp. It reads by `reach.reading` and `behaviour.listing`, and acts by `verbs.acts`.

    GET  /                  the page            GET /page/NAME      its files, read once
    GET  /api/tree          all rows            GET /api/events     the stream of a page
    GET  /api/…             `READINGS`          POST /api/…         `PAGE_ACTS`
    GET  /metrics           for Prometheus

Errors are JSON with an ``error``: 400 for what cannot be read, 404 for no such agent, 409 for what the runtime refuses,
410 for pruned messages, 503 for a database that does not answer.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from time import monotonic
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from ikigai_actors.behaviour.listing import EXPERIMENT_READINGS
from ikigai_actors.errors import (
    AgentNotFound,
    AmbiguousAgent,
    BadInput,
    DocumentNotFound,
    HistoryPruned,
    IkigaiError,
    StoreError,
)
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.reading import READINGS, PageQuery, messages_after
from ikigai_actors.reach.rows import ROW_COLUMNS
from ikigai_actors.reach.views import location_of, now_of
from ikigai_actors.sight.metrics import EXPOSITION, exposition, read_metrics
from ikigai_actors.sight.streams import compact_json, page_stream
from ikigai_actors.sight.watch import PAGE_TICK, ObserverWatch
from ikigai_actors.system.approvals import person
from ikigai_actors.system.handles.ref import System
from ikigai_actors.verbs.act import Act
from ikigai_actors.verbs.acts import ACTS
from ikigai_actors.verbs.acts.turns import Begun, begun_turn

_LARGEST_BODY = 1 << 20
"""The largest body of a request, in bytes."""

_QUIET = 15.0
"""Seconds without news after which a stream says that it is there: proxies close what is silent."""

PAGE_ACTS = ("prompt", "steer", "fork", "decide", "signal", "send", "grant")
"""The acts that a page asks for."""

_PATIENCE = 20.0
"""Seconds that a request waits for its commit."""

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_STATUSES: tuple[tuple[type[IkigaiError], int], ...] = (
    (BadInput, 400), (AgentNotFound, 404), (AmbiguousAgent, 404), (DocumentNotFound, 404), (HistoryPruned, 410),
    (StoreError, 503),
)  # fmt: skip


class PageServer:
    """Answers the requests of pages."""

    def __init__(self, watch: ObserverWatch, read_only: bool, shell: Callable[[], str | None] | None = None) -> None:
        """Prepare; ``shell`` gives the link to a shell in the browser, on a thread."""
        self._watch, self._read_only = watch, read_only
        self._shell = shell
        self._files = {one.name: one.read_bytes() for one in files("ikigai_actors.sight").joinpath("page").iterdir()}
        self._ended = asyncio.Event()

    def application(self) -> web.Application:
        """The application, which `serving` guards."""
        app = web.Application(middlewares=[self._reporting], client_max_size=_LARGEST_BODY)
        app.router.add_get("/", partial(self._file, "index.html"))
        app.router.add_get("/page/{name}", self._named_file)
        app.router.add_get("/api/tree", self._tree)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/api/events", self._events)
        for name, read in {**READINGS, **EXPERIMENT_READINGS}.items():
            app.router.add_get(f"/api/{name}", partial(self._reading, read))
        for name in PAGE_ACTS:
            app.router.add_post(f"/api/{name}", partial(self._acting, ACTS[name]))
        app.on_shutdown.append(self._end_streams)
        return app

    async def _end_streams(self, app: web.Application) -> None:
        self._ended.set()

    @web.middleware
    async def _reporting(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except IkigaiError as error:
            fallback = 409 if request.method == "POST" else 400
            status = next((number for kind, number in _STATUSES if isinstance(error, kind)), fallback)
            return _error(status, str(error))

    async def _file(self, name: str, request: web.Request) -> web.Response:
        kind = _TYPES.get(name.rpartition(".")[2])
        if name not in self._files or kind is None:
            raise web.HTTPNotFound(text="There is no such file.\n")
        return web.Response(body=self._files[name], content_type=kind, charset="utf-8")

    async def _named_file(self, request: web.Request) -> web.Response:
        return await self._file(request.match_info["name"], request)

    async def _tree(self, request: web.Request) -> web.Response:
        watch = self._watch
        if not watch.pages or not len(watch.rows):
            await watch.refresh()
        version, rows = watch.rows.table()
        return _answer(
            {
                "epoch": watch.rows.epoch,
                "version": version,
                "now": now_of(watch.system),
                "columns": ROW_COLUMNS,
                "rows": rows,
                "database": location_of(watch.system),
                "host": watch.system.attached,
                "read_only": self._read_only,
                "shell": None if self._shell is None else await asyncio.to_thread(self._shell),
            }
        )

    async def _metrics(self, request: web.Request) -> web.Response:
        text = exposition(await self._watch.read(partial(read_metrics, self._watch.system)))
        return web.Response(body=text.encode(), headers={"Content-Type": EXPOSITION})

    async def _reading(self, read: Callable[[System, PageQuery], object], request: web.Request) -> web.Response:
        return _answer(await self._watch.read(partial(read, self._watch.system, request.query)))

    async def _acting(self, act: Act, request: web.Request) -> web.Response:
        if self._read_only:
            return _error(403, "This observer was started with --read-only.")
        if request.headers.get("X-Ikigai") != "1" or request.content_type != "application/json":
            return _error(403, "Expected Content-Type: application/json, and X-Ikigai: 1.")
        try:
            body = json.loads(await request.read())
        except (ValueError, RecursionError) as error:
            return _error(400, f"Expected a JSON object: {error}.")
        if not isinstance(body, dict):
            return _error(400, "Expected a JSON object.")
        return _answer({"done": await asyncio.to_thread(self._do, act, body)})

    def _do(self, act: Act, body: object) -> object:
        """Do what a page asks for, as the person who has begun the observer. A turn is known by its handle."""
        reach = Access.of(self._watch.system, _PATIENCE, person())
        done = act.call(reach, body)
        return begun_turn(reach, done) if isinstance(done, Begun) else done

    async def _events(self, request: web.Request) -> web.StreamResponse:
        watch = self._watch
        await watch.join()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        try:
            stream, is_other = page_stream(request.query, request.headers.get("Last-Event-ID"), watch.rows)
            await response.prepare(request)
            await response.write(b"retry: 300\n\n" + (b"event: reset\ndata: {}\n\n" if is_other else b""))
            written = due = monotonic()
            while not self._ended.is_set():
                places = stream.due(watch.rows, monotonic())
                news = await watch.read(partial(messages_after, watch.system, places)) if places else {}
                text = stream.tell(watch.rows, watch.replies, news, watch.trouble)
                if text or monotonic() - written >= _QUIET:
                    await response.write(text.encode() or b":\n\n")
                    written = monotonic()
                due = max(due + PAGE_TICK, monotonic())
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), due - monotonic())
        except ConnectionResetError:  # the page has gone
            pass
        finally:
            watch.leave()
        return response


def _answer(value: Any) -> web.Response:
    return web.Response(text=compact_json(value), content_type="application/json")


def _error(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)
