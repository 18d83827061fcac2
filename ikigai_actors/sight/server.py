"""The page as an application of ASGI.

The server reads by `reach.reading` and `behaviour.listing`, and acts by `verbs.acts`.

    GET  /                  the page            GET /page/NAME      a file of the page, read once
    GET  /api/tree          all agents' rows    GET /api/events     the stream of events to a page
    GET  /api/…             `READINGS`          POST /api/…         `PAGE_ACTS`
    GET  /metrics           for Prometheus

Errors are JSON with an ``error``: 400 for an invalid request, 404 for an unknown agent, 409 for a refusal of the
runtime, 410 for pruned messages, 503 for a database that does not answer.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from time import monotonic
from typing import Any

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
from ikigai_actors.http_server.answers import TEXT, SentEventStream, answer
from ikigai_actors.http_server.requests import AsgiScope, HttpRequest, Receive, RequestRefused, SendEvent
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.metrics import EXPOSITION, exposition, read_metrics
from ikigai_actors.reach.reading import READINGS, PageQuery, messages_after
from ikigai_actors.reach.rows import ROW_COLUMNS
from ikigai_actors.reach.views import location_of, now_of
from ikigai_actors.sight.streams import PageStream, compact_json, page_stream
from ikigai_actors.sight.watch import PAGE_TICK, ObserverWatch
from ikigai_actors.system.handles.ref import System
from ikigai_actors.verbs.act import Act
from ikigai_actors.verbs.acts import ACTS
from ikigai_actors.verbs.acts.turns import Begun, begun_turn

_LARGEST_BODY = 1 << 20
"""The largest body of a request, in bytes."""

_QUIET = 15.0
"""Seconds without news after which a stream sends a comment, so that proxies keep the idle connection open."""

PAGE_ACTS = ("prompt", "steer", "fork", "answer", "signal", "send", "grant")
"""The names of the acts that a page may request."""

_PATIENCE = 20.0
"""Seconds that a request waits for its commit."""

_RETRY_MS = 300
"""Milliseconds after which a page connects again."""

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_STATUSES: tuple[tuple[type[IkigaiError], int], ...] = (
    (BadInput, 400), (AgentNotFound, 404), (AmbiguousAgent, 404), (DocumentNotFound, 404), (HistoryPruned, 410),
    (StoreError, 503),
)  # fmt: skip


class PageServer:
    """Answers the requests of observer pages."""

    def __init__(self, watch: ObserverWatch, read_only: bool, shell: Callable[[], str | None] | None = None) -> None:
        """Prepare the server; ``shell`` returns the link to a shell in the browser, on a thread."""
        self._watch, self._read_only = watch, read_only
        self._shell = shell
        self._files = {path.name: path.read_bytes() for path in files("ikigai_actors.sight").joinpath("page").iterdir()}
        self._ended = asyncio.Event()

    def drain(self) -> None:
        """End the streams of all pages."""
        self._ended.set()

    async def __call__(self, scope: AsgiScope, receive: Receive, out: SendEvent) -> None:
        request = HttpRequest(scope, receive)
        handler = self._handlers().get(scope["path"])
        if scope["path"].startswith("/page/"):
            handler = "GET", partial(self._file, scope["path"].removeprefix("/page/"))
        method = "GET" if request.method == "HEAD" else request.method
        if handler is None:
            await answer(out, 404, b"There is no such path.\n", media=TEXT)
        elif handler[0] != method:
            await answer(out, 405, b"Another method is expected.\n", {"Allow": handler[0]}, TEXT)
        else:
            await self._reported(handler[1], request, out)

    def _handlers(self) -> "dict[str, tuple[str, Handler]]":
        acts: dict[str, tuple[str, Handler]] = {
            f"/api/{name}": ("POST", partial(self._acting, ACTS[name])) for name in PAGE_ACTS
        }
        readings: dict[str, tuple[str, Handler]] = {
            f"/api/{name}": ("GET", partial(self._reading, read))
            for name, read in {**READINGS, **EXPERIMENT_READINGS}.items()
        }
        return {
            **readings,
            **acts,
            "/": ("GET", partial(self._file, "index.html")),
            "/api/tree": ("GET", self._tree),
            "/api/events": ("GET", self._events),
            "/metrics": ("GET", self._metrics),
        }

    async def _reported(self, handler: "Handler", request: HttpRequest, out: SendEvent) -> None:
        try:
            await handler(request, out)
        except RequestRefused as error:
            await _error(out, error.status, error.text)
        except IkigaiError as error:
            fallback = 409 if request.method == "POST" else 400
            status = next((number for kind, number in _STATUSES if isinstance(error, kind)), fallback)
            await _error(out, status, str(error))

    async def _file(self, name: str, request: HttpRequest, out: SendEvent) -> None:
        kind = _TYPES.get(name.rpartition(".")[2])
        if name not in self._files or kind is None:
            await answer(out, 404, b"There is no such file.\n", media=TEXT)
        else:
            await answer(out, 200, self._files[name], media=f"{kind}; charset=utf-8")

    async def _tree(self, request: HttpRequest, out: SendEvent) -> None:
        watch = self._watch
        if not watch.pages or not len(watch.rows):
            await watch.refresh()
        version, rows = watch.rows.table()
        tree = {
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
        await _answer(out, tree)

    async def _metrics(self, request: HttpRequest, out: SendEvent) -> None:
        text = exposition(await self._watch.read(partial(read_metrics, self._watch.system)))
        await answer(out, 200, text.encode(), media=EXPOSITION)

    async def _reading(self, read: Callable[[System, PageQuery], object], request: HttpRequest, out: SendEvent) -> None:
        await _answer(out, await self._watch.read(partial(read, self._watch.system, request.query)))

    async def _acting(self, act: Act, request: HttpRequest, out: SendEvent) -> None:
        if self._read_only:
            await _error(out, 403, "This observer was started with --read-only.")
            return
        if request.headers.get("x-ikigai") != "1" or request.media != "application/json":
            await _error(out, 403, "Expected Content-Type: application/json, and X-Ikigai: 1.")
            return
        try:
            body = json.loads(await request.body(_LARGEST_BODY))
        except (ValueError, RecursionError) as error:
            await _error(out, 400, f"Expected a JSON object: {error}.")
            return
        if not isinstance(body, dict):
            await _error(out, 400, "Expected a JSON object.")
            return
        await _answer(out, {"done": await asyncio.to_thread(self._do, act, body)})

    def _do(self, act: Act, body: object) -> object:
        """Carry out an act that a page requests, as the person who started the observer, and return its result."""
        reach = Access.of_person(self._watch.system, _PATIENCE)
        done = act.call(reach, body)
        return begun_turn(reach, done) if isinstance(done, Begun) else done

    async def _events(self, request: HttpRequest, out: SendEvent) -> None:
        watch = self._watch
        await watch.join()
        try:
            place, is_other = page_stream(request.query, request.headers.get("last-event-id"), watch.rows)
            async with SentEventStream(request, out, _RETRY_MS) as stream:
                if is_other:
                    await stream.event({}, "reset")
                await self._tell(place, stream)
        finally:
            watch.leave()

    async def _tell(self, place: PageStream, stream: SentEventStream) -> None:
        """Send news to a page until it disconnects or the server ends. Raises `ConnectionError`."""
        watch, written, due = self._watch, monotonic(), monotonic()
        while not self._ended.is_set():
            places = place.due(watch.rows, monotonic())
            news = await watch.read(partial(messages_after, watch.system, places)) if places else {}
            text = place.tell(watch.rows, watch.replies, news, watch.trouble)
            if text or monotonic() - written >= _QUIET or stream.is_left:
                await stream.write(text or ":\n\n")
                written = monotonic()
            due = max(due + PAGE_TICK, monotonic())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), due - monotonic())


Handler = Callable[[HttpRequest, SendEvent], Awaitable[None]]


async def _answer(out: SendEvent, value: Any) -> None:
    await answer(out, 200, compact_json(value).encode(), media="application/json; charset=utf-8")


async def _error(out: SendEvent, status: int, text: str) -> None:
    await answer(out, status, {"error": text})
