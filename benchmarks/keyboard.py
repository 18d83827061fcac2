"""The keyboard of the application while agents stream: from a key to the screen that shows it.

The real program runs on a terminal of its own. Its agents are prompted and stream for as long as it takes; then single
letters are typed at the first one's prompt, one each fifth of a second and a bit, and timed from the write to the first
output that shows the letter. Each other key deletes what was typed. The idle application is what the streaming one is
compared with: of three runs of each in turn, that with the lowest p90. Each agent streams markdown, a word each
twentieth of a second; one of them is in sight. An agent is opened by ``/switch``: from Enter to the last of its
messages.
"""

import itertools
import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks import population
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, OfflineProvider

PACE = 0.05
"""Seconds between two deltas of each agent."""

BETWEEN = 0.21
"""Seconds between two keys: no multiple of the time between two refreshes."""

STREAMS = 200
COUNTED = "agents that stream"

PATIENCE = 60.0

TEXT = """A paragraph that tells something, with *emphasis* and `code`, long enough to be wrapped on a narrow screen.

- an item
- another item, with a [link](https://example.org)

```python
def answer() -> int:
    return 42
```

| a | b |
|---|---|
| 1 | 2 |

"""
"""What each agent says again and again."""

INHERITED = 1_000_000


Late = list[float]
"""Seconds from each key to the screen, in order."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """At the two sizes, idle and with streams; and then how long opening an agent takes."""
    keys, runs = (30, 1) if quick else (100, 3)
    for columns, lines in ((80, 24), (200, 60)):
        measured: dict[int, list[Late]] = {0: [], STREAMS: []}
        for _ in range(runs):
            for streams, late in measured.items():
                late.append(_measure(columns, lines, streams, keys))
        best = {streams: min(late, key=lambda sample: _rank(sample, 90)) for streams, late in measured.items()}
        for figure, rank in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)):
            idle = _rank(best[0], rank)
            name = f"key to screen {columns}×{lines}, {figure}"
            yield Row(name, "ikigai", "idle", 0, COUNTED, idle, "s")
            yield Row(name, "ikigai", "200 stream", STREAMS, COUNTED, _rank(best[STREAMS], rank), "s", "idle", idle)
    inherited, repetitions = (INHERITED // 10, 3) if quick else (INHERITED, 7)
    nothing, much = (median(_opened(places[0], count, repetitions)) for count in (0, inherited))
    yield Row("agent opened on the screen", "ikigai", "idle", 0, "inherited messages", nothing, "s")
    yield Row(
        "agent opened on the screen", "ikigai", "idle", inherited, "inherited messages", much, "s", "at 0", nothing
    )


def _rank(late: Late, percent: int) -> float:
    return late[min(len(late) * percent // 100, len(late) - 1)]


def _opened(place: Place, inherited: int, repetitions: int) -> list[float]:
    database = place.fresh()
    try:
        root = population.alone(database, inherited)
        with ActorSystem.open(database.url, OfflineProvider()) as system:
            parents = [system.handle(root).fork() for _ in range(repetitions)]
            heirs = [parent.fork().uuid for parent in parents]
            system._touch(system.root)
        with _program(80, 24, database.url, 0) as terminal:
            return [_time_opening(terminal, root, heir) for heir in heirs]
    finally:
        database.drop()


def _measure(columns: int, lines: int, streams: int, keys: int) -> Late:
    with (
        tempfile.TemporaryDirectory() as directory,
        _program(columns, lines, str(Path(directory) / "bench.db"), streams) as terminal,
    ):
        _drain(terminal, 5.0 if streams else 1.0)
        return sorted(_time_key(terminal, turn) for turn in range(keys))


@contextmanager
def _program(columns: int, lines: int, database: str, streams: int) -> Iterator[int]:
    """The program on a terminal of its own."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (lines, columns))
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "TERM": "xterm-256color", "IKIGAI_HOME": home}
        command = [sys.executable, "-m", "benchmarks.keyboard", database, str(streams)]
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        try:
            _read_until(ours, b"for commands")
            yield ours
        finally:
            process.kill()
            process.wait()
            os.close(ours)
            os.close(theirs)


def _time_opening(terminal: int, root: str, heir: str) -> float:
    """Go to an agent from the root, until its last line shows what it inherits."""
    _switch(terminal, root)
    _drain(terminal, 1.0)
    return _switch(terminal, heir, b"inherited: ")


def _switch(terminal: int, agent: str, wanted: bytes = b"") -> float:
    """Seconds from Enter until the screen shows what is wanted."""
    os.write(terminal, f"/switch {agent}".encode())
    _drain(terminal, 1.0)
    began = time.perf_counter()
    os.write(terminal, b"\r")
    _read_until(terminal, wanted)
    return time.perf_counter() - began


def _time_key(terminal: int, turn: int) -> float:
    """Type a letter that is nowhere else, see it, delete it."""
    letter = "ЖЩЮЯФ"[turn % 5].encode()
    _drain(terminal, BETWEEN)
    began = time.perf_counter()
    os.write(terminal, letter)
    _read_until(terminal, letter)
    late = time.perf_counter() - began
    _drain(terminal, BETWEEN)
    os.write(terminal, b"\x7f")
    return late


def _read_until(terminal: int, wanted: bytes) -> None:
    seen, deadline = b"", time.monotonic() + PATIENCE
    while wanted not in seen:
        rest = deadline - time.monotonic()
        if rest <= 0 or not select.select([terminal], [], [], rest)[0]:
            raise RuntimeError(f"Not shown in time: {wanted!r}")
        seen = seen[-100:] + os.read(terminal, 65536)


def _drain(terminal: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (rest := deadline - time.monotonic()) > 0:
        if select.select([terminal], [], [], rest)[0]:
            os.read(terminal, 65536)


def _main(database: str, streams: int) -> None:
    """The program that is measured: the application over agents that all stream."""
    import asyncio

    from ikigai_actors import Reply, Request
    from ikigai_actors.providers.base import Delta, OnDelta
    from ikigai_actors.shell.app.application import Application

    words = [f"{word} " if "\n" not in word else word for word in TEXT.split(" ")]

    class Endless:
        name = "endless"

        async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
            for word in itertools.cycle(words):
                await asyncio.sleep(PACE)
                on_delta(Delta(word))
            raise AssertionError(json.dumps(request.settings))

        async def close(self) -> None:
            """Holds nothing."""

    with ActorSystem.open(database, Endless()) as system:
        agents = [system.root, *(system.root.fork() for _ in range(streams - 1))] if streams else []
        for agent in agents:
            agent.prompt("Go on.")
        Application(system).run_it()


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
