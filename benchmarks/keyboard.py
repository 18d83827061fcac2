"""The keyboard of the application while agents stream: from a key to the screen that shows it.

The real program runs on a terminal of its own. Its agents are prompted and stream for as long as it takes; then single
letters are typed at the first one's prompt, one each fifth of a second and a bit, and timed from the write to the first
output that shows the letter. Each other key deletes what was typed. One of the agents is in sight; each streams
markdown, a word each twentieth of a second.
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
from pathlib import Path

from benchmarks.places import Place
from benchmarks.results import Row

COUNTED = "agents that stream"

PACE = 0.05
"""Seconds between two deltas of each agent."""

BETWEEN = 0.21
"""Seconds between two keys: no multiple of the time between two refreshes."""

PATIENCE = 120.0

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


def run(_: list[Place], quick: bool) -> Iterator[Row]:
    """At the two sizes, idle and with streams."""
    keys = 40 if quick else 100
    for (columns, lines), streams in itertools.product(((80, 24), (200, 60)), (0, 20, 200)):
        try:
            late, why = sorted(_measure(columns, lines, streams, keys)), ""
        except TimeoutError:
            late, why = [], f"over {PATIENCE:.0f} s"
        for figure, rank in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)):
            value = late[min(len(late) * rank // 100, len(late) - 1)] if late else None
            yield Row(f"key to screen {columns}×{lines}, {figure}", "ikigai", "", streams, COUNTED, value, "s", why=why)


def _measure(columns: int, lines: int, streams: int, keys: int) -> list[float]:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (lines, columns))
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "TERM": "xterm-256color", "IKIGAI_HOME": home}
        command = [sys.executable, "-m", "benchmarks.keyboard", str(Path(home) / "bench.db"), str(streams)]
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        try:
            _read_until(ours, b"F1 keys")
            _drain(ours, 5.0 if streams else 1.0)
            return [_time_key(ours, turn) for turn in range(keys)]
        finally:
            process.kill()
            process.wait()
            os.close(ours)
            os.close(theirs)


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
        if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError(f"Not shown within {PATIENCE:.0f} s: {wanted!r}")
        seen = seen[-100:] + os.read(terminal, 65536)


def _drain(terminal: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (rest := deadline - time.monotonic()) > 0:
        if select.select([terminal], [], [], rest)[0]:
            os.read(terminal, 65536)


def _main(database: str, streams: int) -> None:
    """The program that is measured: the application over agents that all stream."""
    import asyncio

    from ikigai_actors import ActorSystem, Reply, Request
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
