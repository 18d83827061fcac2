"""A step of a program, by how many steps the turn has. It should be flat.

New: the processor time of one step of a function that does nothing, in a turn of so many, by this process: asked for,
done, and committed before the next one is done. Beside it the same three messages, inserted in one transaction by the
driver alone. Remembered: the processor time of one step whose result the log holds, where a function is called again
after a restart. Replay: the time until it has come to where it waits, with the log read.
"""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks.places import Database, Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, AgentRef, OfflineProvider, Signal, current_agent
from ikigai_actors.programs import Program, program, step
from ikigai_actors.records.messages.messages import Message

SIZES = (100, 400, 1_600)
QUICK_SIZES = (20, 80)
COUNTED = "steps of the turn"
_DAY = 86_400.0


class Costs(NamedTuple):
    """Seconds."""

    new: float
    raw: float
    remembered: float
    replay: float


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Each place with each number of steps."""
    for place in places:
        for size in QUICK_SIZES if quick else SIZES:
            costs, head = _costs(place, size), ("ikigai", place.name, size, COUNTED)
            yield Row("a new step, processor", *head, costs.new, "s", "3 raw INSERTs", costs.raw)
            yield Row("a remembered step, processor", *head, costs.remembered, "s", "3 raw INSERTs", costs.raw)
            yield Row("replay", *head, costs.replay, "s")


def counts(task: str) -> str:
    """Do as many steps as the task says, and wait."""
    for number in range(int(task)):
        step(_same, number)
    current_agent().sleep(_DAY)
    return "done"


def _same(number: int) -> int:
    return number


def _costs(place: Place, size: int) -> Costs:
    database = place.fresh()
    try:
        lead = program(counts)
        with _opened(database, lead) as system:
            agent = system.root.fork(name="lead", model=lead)
            agent.prompt("1")
            _until(lambda: _waits(agent))  # prices are read, threads begun
            agent.signal(Signal.INT)
            _until(lambda: agent.state == "idle")
            began = time.process_time()
            agent.prompt(str(size))
            _until(lambda: _waits(agent))
            new = (time.process_time() - began) / size
            messages = agent.history()[-5:-2]
        raw = _raw(database, messages)
        with _opened(database, lead, resume=False) as system:
            agent = system.agent("lead")
            started, began = time.perf_counter(), time.process_time()
            assert not lead.misfit(agent)
            return Costs(new, raw, (time.process_time() - began) / size, time.perf_counter() - started)
    finally:
        database.drop()


def _opened(database: Database, lead: Program, resume: bool | None = None) -> ActorSystem:
    return ActorSystem.open(database.url, provider=OfflineProvider(), programs=[lead], resume=resume)


def _waits(agent: AgentRef) -> bool:
    """Whether the function has done its steps."""
    latest = agent.history()[-1]
    return latest.kind == "tool_call" and latest.content == "wait"


def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)


def _raw(database: Database, messages: list[Message], repetitions: int = 200) -> float:
    """Processor seconds for copies of the messages of a step, by the driver alone."""
    connection = database.connect()
    try:
        agent = connection.execute("SELECT uuid FROM agents WHERE name IS NULL").fetchone()[0]
        copies = [
            [
                (agent, 1_000_000 + 3 * repetition + place, *message.row()[2:], b"0" * 32)
                for place, message in enumerate(messages)
            ]
            for repetition in range(repetitions)
        ]
        began = time.process_time()
        for rows in copies:
            database.insert(connection, rows)
        return (time.process_time() - began) / repetitions
    finally:
        connection.close()
