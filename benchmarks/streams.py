"""Many model streams at once: how late each delta is, through the client of the API alone, and through the runtime.

The server sends the time with each delta (`benchmarks.stamps`); late is when the delta is heard, less that. Each run is
in a process of its own, and has a server of its own in another; medians of three (one of the small size), clients in
turn, each stream with 27 deltas, half a second to a second apart. Bare: `messages.stream` of the `anthropic` package.
Ikigai: as many agents, prompted at once; their deltas are heard by `system.subscribe`.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Hashable, Iterator
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measure import in_new_process
from benchmarks.places import Place
from benchmarks.results import Row
from benchmarks.stamps import StampServer
from ikigai_actors import ActorSystem, AnthropicProvider
from ikigai_actors.agent.subscriptions import Event, Streamed
from tests.kit.descriptors import allow_open_files

if TYPE_CHECKING:
    import httpx2

PROMPT = "Say what time it is, again and again."
PATIENCE = 300.0
"""Seconds after which a run has failed."""


class Figures(NamedTuple):
    """What one run gave; seconds."""

    opening: float
    """From the first request until each stream has said something."""
    cpu: float
    """Of the client's process, for each delta that came when all were open."""
    mean: float
    """How late a delta is heard; likewise those that follow."""
    p50: float
    p90: float
    p99: float
    worst: float


class Arrivals:
    """Takes the deltas as they are heard."""

    def __init__(self, streams: int, deltas: int) -> None:
        self._streams, self._expected = streams, streams * deltas
        self._open: set[Hashable] = set()
        self._late: list[int] = []
        self._began = self._opened = self._cpu_then = self._cpu_at_end = 0

    def begin(self) -> None:
        """The first request is about to be sent."""
        self._began = time.monotonic_ns()

    def heard(self, stream: Hashable, text: str) -> None:
        """A delta of a stream is here. The first of each opens it; its time is not looked at."""
        now = time.monotonic_ns()
        if stream in self._open:
            self._late.append(now - int(text))
            if len(self._late) == self._expected:
                self._cpu_at_end = time.process_time_ns()
            return
        self._open.add(stream)
        if len(self._open) == self._streams:
            self._opened = now
            gc.collect()  # else it happens to one client, in the middle, and to another not
            self._cpu_then = time.process_time_ns()

    def figures(self) -> Figures:
        """What came of the run; it must be over."""
        if len(self._late) != self._expected:
            raise RuntimeError(f"Expected {self._expected} deltas, got {len(self._late)}.")
        late = sorted(each / 1e9 for each in self._late)
        return Figures(
            opening=(self._opened - self._began) / 1e9,
            cpu=(self._cpu_at_end - self._cpu_then) / 1e9 / self._expected,
            mean=fmean(late),
            p50=late[len(late) // 2],
            p90=late[len(late) * 90 // 100],
            p99=late[len(late) * 99 // 100],
            worst=late[-1],
        )


Client = Callable[[Arrivals, str, str, int], None]
"""Opens so many streams at once of the server at a URL, the first string, and hears them to their end. The other string
is the URL of a database, for who needs one.
"""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """By each client in turn. The first of the places serves ours; once streams are open nothing is written to it."""
    place = places[0]
    for streams, deltas, runs in ((100, 6, 1),) if quick else ((100, 27, 1), (1_000, 27, 3)):
        measured: dict[str, list[Figures]] = {name: [] for name in CLIENTS}
        for _ in range(runs):
            for name, client in CLIENTS.items():
                measured[name].append(_measure(client, place, streams, deltas))
        medians = {
            name: Figures(*(median(values) for values in zip(*of, strict=True))) for name, of in measured.items()
        }
        for figure, title in NAMES.items():
            limit = getattr(medians[BARE], figure)
            for name, own in medians.items():
                beside = () if name == BARE else (BARE, limit)
                backend = place.name if name == OURS else ""
                yield Row(title, name, backend, streams, "streams", getattr(own, figure), "s", *beside)


def _measure(client: Client, place: Place, streams: int, deltas: int) -> Figures:
    database = place.fresh()
    try:
        with StampServer(streams, deltas) as url:
            return in_new_process(_figures, client, url, database.url, streams, deltas)
    finally:
        database.drop()


def _figures(client: Client, url: str, database: str, streams: int, deltas: int) -> Figures:
    """One run, in the client's process."""
    import anthropic  # noqa: F401 - for its 1.4 s, which are no part of opening streams

    arrivals = Arrivals(streams, deltas)
    with allow_open_files(streams):
        client(arrivals, url, database, streams)
    return arrivals.figures()


def _bare_aiohttp(arrivals: Arrivals, url: str, _: str, streams: int) -> None:
    import anthropic

    asyncio.run(_stream_all(arrivals, url, streams, anthropic.DefaultAioHttpClient))


def _bare_httpx2(arrivals: Arrivals, url: str, _: str, streams: int) -> None:
    import anthropic

    asyncio.run(_stream_all(arrivals, url, streams, anthropic.DefaultAsyncHttpxClient))


async def _stream_all(
    arrivals: Arrivals, url: str, streams: int, transport: "Callable[[], httpx2.AsyncClient]"
) -> None:
    import anthropic

    async def listen(stream: int) -> None:
        async with client.messages.stream(
            model="stamps", max_tokens=16_000, messages=[{"role": "user", "content": PROMPT}]
        ) as events:
            async for event in events:
                if event.type == "text":
                    arrivals.heard(stream, event.text)

    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", http_client=transport()) as client:
        arrivals.begin()
        await asyncio.gather(*(listen(stream) for stream in range(streams)))


def _agents(arrivals: Arrivals, url: str, database: str, streams: int) -> None:
    def hear(event: Event) -> None:
        if isinstance(event, Streamed):
            arrivals.heard(event.agent_uuid, event.text)

    with ActorSystem.open(database, AnthropicProvider(base_url=url, api_key="none")) as system:
        forks = [system.root.aio.fork() for _ in range(streams)]
        agents = [fork.get(timeout=PATIENCE) for fork in forks]
        system.subscribe(hear)
        arrivals.begin()
        replies = [agent.prompt(PROMPT) for agent in agents]
        for reply in replies:
            reply.get(timeout=PATIENCE)


OURS, BARE = "ikigai", "bare client, aiohttp"

CLIENTS: dict[str, Client] = {BARE: _bare_aiohttp, "bare client, httpx2": _bare_httpx2, OURS: _agents}

NAMES = {
    "opening": "all open",
    "cpu": "CPU a delta",
    "mean": "late, mean",
    "p50": "late, p50",
    "p90": "late, p90",
    "p99": "late, p99",
    "worst": "late, max",
}
"""What the figures are called in the results."""
