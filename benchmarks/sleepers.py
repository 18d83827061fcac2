"""What agents cost a host that nobody uses: those that rest have no actors (`ikigai_actors.agent.boot`).

A database gets a hundred teams that were really made, and as many copies of their members as make the size. One more
member of each team is awake: its turn is open, and waits for a person to decide on a call. Each figure is of a process
that has opened nothing but a small database before: `ActorSystem.open` until it returns, by the clock and by the
processor; the resident memory that it takes; the first turn of an agent that has slept, and the next one, by the
processor, each the mean of a hundred; and the close.
"""

import resource
import time
from collections.abc import Iterator

from benchmarks.host_processes import until
from benchmarks.measure import in_new_process, process_memory
from benchmarks.places import COLUMNS, Database, Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, OfflineProvider, tool

SIZES = (10_000, 100_000, 1_000_000)
"""Agents that live."""

TEAMS = 100
"""As many agents are awake."""
CHUNK = 100_000
"""Agents that are copied by one statement."""

FIGURES = (
    ("open", "s"),
    ("open, processor", "s"),
    ("memory", "B"),
    ("first turn, processor", "s"),
    ("next turn, processor", "s"),
    ("close", "s"),
)


@tool(policy="ask")
def pay(euros: int) -> str:
    """Pay a bill."""
    return f"paid {euros} euros"


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Each size in each place; of a million in the thorough run alone."""
    for place in places:
        for count in SIZES[:1] if quick else SIZES:
            database = place.fresh()
            try:
                some = sleepers(database, count)
                database.settle()
                for (name, unit), figure in zip(FIGURES, in_new_process(_measure, database.url, some), strict=True):
                    yield Row(f"sleepers: {name}", "ikigai", place.name, count, "agents", figure, unit)
            finally:
                database.drop()


def sleepers(database: Database, count: int) -> list[str]:
    """Agents that rest, below a hundred teams, and one in each that is awake; returns the uuids of some that rest."""
    with _open(database.url) as system:
        teams = system.root.fork(count=TEAMS)
        members = [team.fork() for team in teams]
        for team in teams:
            team.fork('@pay {"euros": 40}')
        until(lambda: len(system.approvals.pending()) == TEAMS, "the calls")
    connection = database.connect()
    try:
        agent = connection.execute(f"SELECT * FROM agents WHERE uuid = '{members[0].uuid}'")
        others = ", ".join(column[0] for column in agent.description if column[0] != "uuid")
        message = COLUMNS.replace("agent_uuid, ", "")
        left, number = count - 3 * TEAMS - 1, 0
        while left > 0:
            some = min(CHUNK, left)
            connection.execute("BEGIN")
            for place, member in enumerate(members):
                here = some // TEAMS + (place < some % TEAMS)
                numbers = (
                    f"WITH RECURSIVE n (at) AS (SELECT {number} UNION ALL SELECT at + 1 FROM n"
                    f" WHERE at + 1 < {number + here})"
                )
                uuid = copied_uuid("at")
                if here:
                    connection.execute(
                        f"INSERT INTO agents (uuid, {others}) {numbers}"
                        f" SELECT {uuid}, {others} FROM n, agents WHERE agents.uuid = '{member.uuid}'"
                    )
                    connection.execute(
                        f"INSERT INTO messages (agent_uuid, {message}) {numbers} SELECT {uuid}, {message}"
                        f" FROM n, messages WHERE messages.agent_uuid = '{member.uuid}'"
                    )
                number += here
            connection.execute("COMMIT")
            left -= some
    finally:
        connection.close()
    return [member.uuid for member in members]


def copied_uuid(number: str) -> str:
    """SQL for a uuid of 22 characters that is made of a number: the last digits first, as real ones spread."""
    digits = f"CAST({number} + 1000000000 AS TEXT)"
    last_first = " || ".join(f"substr({digits}, {place}, 1)" for place in (10, 9, 8))
    return f"{last_first} || 'copy' || {digits} || 'agent'"


def _measure(url: str, some: list[str]) -> tuple[float, ...]:
    """The figures, in their order."""
    with _open(":memory:") as system:
        _turns(system, [system.root.uuid])  # what is imported is imported
    memory = process_memory()
    started, worked = time.perf_counter(), processor_seconds()
    system = _open(url)
    opened, opening = time.perf_counter() - started, processor_seconds() - worked
    held = process_memory() - memory
    if (awake := len(system.approvals.pending())) != TEAMS:
        raise AssertionError(f"Expected {TEAMS} agents that wait for a decision, got {awake}.")
    turns = [_turns(system, some) for _ in range(2)]
    started = time.perf_counter()
    system.close()
    return opened, opening, float(held), *turns, time.perf_counter() - started


def _open(url: str) -> ActorSystem:
    return ActorSystem.open(url, OfflineProvider(), tools=[pay], approvals="ask")


def _turns(system: ActorSystem, agents: list[str]) -> float:
    """The processor's seconds for a turn of each of these agents, in the mean."""
    worked = processor_seconds()
    for agent in agents:
        system.handle(agent).prompt("What is there?").get()
    return (processor_seconds() - worked) / len(agents)


def processor_seconds() -> float:
    """The time of the processor that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
