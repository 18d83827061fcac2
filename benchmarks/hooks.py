"""A turn with one call of a tool that does nothing, by the hooks that are asked about it.

Each is the processor time of one turn, by this process, beside that of a turn without hooks: the difference is the cost
of the hook. A command is a process of its own, and its processor time is not in it; so its row is a time of the clock,
the median of the turns.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, FunctionProvider, Reply, Request, ToolCall, tool
from ikigai_actors.hooks import Hook, command_hooks, hook

TURNS, QUICK_TURNS = 60, 10
COUNTED = "turns"


@tool
def nothing() -> str:
    """Do nothing."""
    return "done"


def silent(asked: object) -> None:
    """Have no objection."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Each place with each hook."""
    turns = QUICK_TURNS if quick else TURNS
    for place in places:
        processor, clock = _turn(place, (), turns)
        head = ("ikigai", place.name, turns, COUNTED)
        for name, hooks in _hooks().items():
            took, _ = _turn(place, hooks, turns)
            yield Row(f"a turn with {name}, processor", *head, took, "s", "without hooks", processor)
        with TemporaryDirectory() as folder:
            _, took = _turn(place, _commands(Path(folder)), turns)
            yield Row("a turn with a command before the call", *head, took, "s", "without hooks", clock)


def _hooks() -> Mapping[str, Sequence[Hook]]:
    events = ("before_call", "filter_result", "after_call", "before_request", "after_reply")
    made = {event: [hook(event, name=event)(silent)] for event in events}
    return made | {"all five": [each for hooks in made.values() for each in hooks]}


def _commands(folder: Path) -> Sequence[Hook]:
    file = folder / "settings.json"
    entry = {"matcher": "*", "hooks": [{"type": "command", "command": "true"}]}
    file.write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}), encoding="utf-8")
    return command_hooks(file, directory=folder)


def _answer(request: Request) -> Reply | str:
    last = request.messages[-1]["content"][-1]
    if last["type"] == "tool_result":
        return "done"
    return Reply(tool_calls=(ToolCall("nothing", {}, "1"),), stop_reason="tool_use")


def _turn(place: Place, hooks: Sequence[Hook], turns: int) -> tuple[float, float]:
    """The seconds of the processor, and of the clock, that one turn takes."""
    database = place.fresh()
    try:
        with ActorSystem.open(database.url, FunctionProvider(_answer), tools=[nothing], hooks=hooks) as system:
            for _ in range(5):
                system.root.prompt("Go on.").get(timeout=60)
            began, clock = time.process_time(), list[float]()
            for _ in range(turns):
                started = time.perf_counter()
                system.root.prompt("Go on.").get(timeout=60)
                clock.append(time.perf_counter() - started)
            return (time.process_time() - began) / turns, median(clock)
    finally:
        database.drop()
