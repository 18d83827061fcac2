"""The cost of parked programs (`records.log.parking`) to a host, beside that of agents that rest.

A database gets as many agents that rest as the size says (`benchmarks.sleepers`), and is measured. Then it gets as many
programs that are parked: a hundred that were really prompted and parked, each of which waits for the turn of a child,
a program that waits for a person, and copies of these. It is measured again. Each figure is of a process that has
opened nothing but a small database before: `ActorSystem.open` until it returns, by the clock and by the processor, and
the resident memory that it takes. *Wakes* is the time from the answer of that person to the reply of one program.
*Bytes in the file* are those that each parked program adds to the database, with its log.
"""

import time
from collections.abc import Iterator

from benchmarks.host_processes import until
from benchmarks.measure import in_new_process, process_memory
from benchmarks.places import COLUMNS, Database, Place
from benchmarks.results import Row
from benchmarks.sleepers import CHUNK, TEAMS, copied_uuid, pay, processor_seconds, sleepers
from ikigai_actors import ActorSystem, AgentRef, OfflineProvider, current_agent
from ikigai_actors.programs import program

SIZES = (1_000, 100_000)
"""Agents that rest, and as many programs that are parked."""

FIGURES = (("open", "s"), ("open, processor", "s"), ("memory", "B"), ("wakes", "s"))


@program
def leads(task: str) -> str:
    """Wait for a child, which waits for a person."""
    return current_agent().fork(model=asks).prompt(task).get().text


@program
def asks(task: str) -> str:
    """Wait for a person."""
    return str(current_agent().ask(task))


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Each size in each place; the larger one in the thorough run alone."""
    for place in places:
        for count in SIZES[:1] if quick else SIZES:
            database = place.fresh()
            try:
                sleepers(database, count)
                database.settle()
                yield from _rows("beside none", place, count, in_new_process(_measure, database.url, ""))
                before = _size(database)
                state = parked(database, count)
                database.settle()
                yield Row("parked: bytes in the file", "ikigai", place.name, count, "programs",
                          (_size(database) - before) / count, "B")  # fmt: skip
                yield from _rows("all", place, count, in_new_process(_measure, database.url, state))
            finally:
                database.drop()


def parked(database: Database, count: int) -> str:
    """Programs that are parked, this many; returns the uuid of one that is no copy and has none."""
    with _open(database.url, park_after=0.2) as system:
        programs = [system.root.fork(model=leads) for _ in range(TEAMS + 1)]
        for program in programs:
            program.prompt("Pay the bill?")
        until(lambda: len(system.questions.pending()) > TEAMS, "the questions")
        until(lambda: all(agent.record.parked == 1 for agent in (*programs, *_children(programs))), "the parking")
    connection = database.connect()
    try:
        agent = connection.execute(f"SELECT * FROM agents WHERE uuid = '{programs[0].uuid}'")
        others = ", ".join(column[0] for column in agent.description if column[0] != "uuid")
        message = COLUMNS.replace("agent_uuid, ", "")
        left, number = count - TEAMS - 1, 0
        while left > 0:
            some = min(CHUNK, left)
            connection.execute("BEGIN")
            for place, program in enumerate(programs[1:]):
                here = some // TEAMS + (place < some % TEAMS)
                if here:
                    _copy(connection, program.uuid, number, here, others, message)
                number += here
            connection.execute("COMMIT")
            left -= some
    finally:
        connection.close()
    return programs[0].uuid


def _children(programs: list[AgentRef]) -> list[AgentRef]:
    return [child for program in programs for child in program.children()]


def _copy(connection: object, uuid: str, number: int, count: int, others: str, message: str) -> None:
    numbers = (
        f"WITH RECURSIVE n (at) AS (SELECT {number} UNION ALL SELECT at + 1 FROM n WHERE at + 1 < {number + count})"
    )
    copy = copied_uuid("at").replace("copy", "park")
    for table, columns, selected, key in (
        ("agents", f"uuid, {others}", f"{copy}, {others}", "uuid"),
        ("messages", f"agent_uuid, {message}", f"{copy}, {message}", "agent_uuid"),
        ("asked", "asker, agent, prompt, awaited", f"{copy}, agent, prompt, awaited", "asker"),
    ):
        connection.execute(  # type: ignore[attr-defined]
            f"INSERT INTO {table} ({columns}) {numbers} SELECT {selected} "
            f"FROM n, {table} WHERE {table}.{key} = '{uuid}'"
        )


def _rows(which: str, place: Place, count: int, figures: tuple[float, ...]) -> Iterator[Row]:
    for (name, unit), figure in zip(FIGURES, figures, strict=False):
        yield Row(f"parked, {which}: {name}", "ikigai", place.name, count, "agents", figure, unit)


def _measure(url: str, target: str) -> tuple[float, ...]:
    """The figures, in their order; the last one where there is a program to be woken."""
    with _open(":memory:") as system:
        system.root.fork(model=leads).prompt("go")  # what is imported is imported
        until(lambda: system.questions.pending(), "the question")
    memory = process_memory()
    started, worked = time.perf_counter(), processor_seconds()
    system = _open(url)
    opened, opening = time.perf_counter() - started, processor_seconds() - worked
    held = process_memory() - memory
    with system:
        if not target:
            return opened, opening, float(held)
        boss = system.handle(target)
        [kid] = [child.uuid for child in boss.children()]
        [question] = [waiting for waiting in system.questions.pending() if waiting.agent == kid]
        started = time.perf_counter()
        system.questions.answer(question.id, True)
        boss.reply(timeout=60)
        return opened, opening, float(held), time.perf_counter() - started


def _open(url: str, park_after: float = 60.0) -> ActorSystem:
    return ActorSystem.open(
        url, OfflineProvider(), tools=[pay], approvals="ask", programs=[leads, asks], park_after=park_after
    )


def _size(database: Database) -> int:
    connection = database.connect()
    try:
        if database.url.startswith("postgres"):
            [[size]] = connection.execute(
                "SELECT CAST(SUM(pg_total_relation_size(c.oid)) AS BIGINT) FROM pg_class c"
                " JOIN pg_namespace s ON s.oid = c.relnamespace WHERE s.nspname = current_schema() AND c.relkind = 'r'"
            ).fetchall()
        else:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            [[size]] = connection.execute(
                "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            ).fetchall()
        return int(size)
    finally:
        connection.close()
