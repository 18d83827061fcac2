"""One long turn: a conversation of 209,000 tokens, and a hundred model calls with 5 KB of result of each but the last.

Whoever stores the whole conversation at each step stores it a hundred times: there is a workflow engine that ends such
a turn at its 53rd model call, since a history of 50 MB is too long for it. Measured are the seconds of the turn, with
a function as the model, and the bytes of the files that are left.
"""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.machine import installed
from benchmarks.measure import timed
from benchmarks.places import Place, SQLitePlace
from benchmarks.results import Row
from ikigai_actors import ActorSystem, Reply, Request, ScriptedProvider, ToolCall, tool

TOKENS = 209_000
MODEL_CALLS = 100
BYTES_PER_TOKEN = 4
RESULT = "0123456789abcdef " * 300
"""What each call gives: 5,100 bytes."""


def prompt(calls: int) -> str:
    """What the turn begins with: so long that the conversation has `TOKENS` in the end."""
    text = "The quick brown fox jumps over the lazy dog. "
    return text * ((TOKENS * BYTES_PER_TOKEN - (calls - 1) * len(RESULT)) // len(text))


class _Peer(NamedTuple):
    """Another one that can be asked for such a turn: ``module.long_turn(directory, prompt, result, calls)``."""

    name: str
    package: str
    module: str
    arguments: tuple[str, ...] = ()


_PEERS = (
    *(
        _Peer(
            f"LangGraph SqliteSaver{name}",
            "langgraph-checkpoint-sqlite",
            "benchmarks.peers.langgraph_thread",
            (channel, durability),
        )
        for name, channel, durability in (
            ("", "whole", "async"),
            (' with durability="exit"', "whole", "exit"),
            (" with DeltaChannel", "delta", "async"),
        )
    ),
    _Peer("pi-durable-python", "pi-durable-python", "benchmarks.peers.pi_conversation"),
    _Peer("DBOS", "dbos", "benchmarks.peers.dbos_workflow"),
)


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Ours in a file, then the peers in files of theirs."""
    calls = 20 if quick else MODEL_CALLS
    text = prompt(calls)
    stored = len(text) + (calls - 1) * len(RESULT)
    if any(isinstance(place, SQLitePlace) for place in places):
        with TemporaryDirectory(prefix="ikigai-benchmarks-") as made:
            seconds, _ = timed(lambda: ours(Path(made), text, calls))
            yield from _rows("ikigai", calls, seconds, _size(Path(made)), stored)
    for peer in _PEERS:
        name = f"{peer.name} {installed(peer.package) or ''}".strip()
        with TemporaryDirectory(prefix="ikigai-benchmarks-") as made:
            try:
                long_turn = import_module(peer.module).long_turn
            except ImportError:
                yield Row("long turn", name, "SQLite", calls, "model calls", None, "s", why="not installed")
                continue
            seconds, _ = timed(partial(long_turn, Path(made), text, RESULT, calls, *peer.arguments))
            yield from _rows(name, calls, seconds, _size(Path(made)), stored)


def ours(directory: Path, text: str, calls: int) -> None:
    """The turn, by this library."""

    @tool
    def look(step: int) -> str:
        """Look something up."""
        return RESULT

    def answer(request: Request) -> Reply:
        step = len(request.messages) // 2 + 1
        return Reply("Done.") if step >= calls else Reply("", (ToolCall("look", {"step": step}, f"call_{step}"),))

    with ActorSystem.open(directory / "long.db", ScriptedProvider(answer), tools=[look]) as system:
        system.root.configure(max_steps=calls)
        assert system.root.prompt(text).get().text == "Done."
        assert sum(message.kind == "assistant" for message in system.root.history()) == calls


def _rows(who: str, calls: int, seconds: float, size: int, stored: int) -> Iterator[Row]:
    yield Row("long turn", who, "SQLite", calls, "model calls", seconds, "s")
    yield Row("long turn: files", who, "SQLite", calls, "model calls", size, "B", "the text alone", stored)


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())
