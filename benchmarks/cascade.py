"""Cascades: the time to kill an agent and all its descendants, beside what the database itself takes to write as much:
one UPDATE of as many rows, and a bulk insert of as many mails, by the driver alone.

The kill is what the journal commits: who is hit, the rows, an exit mail for each death, one transaction. In a *tree*
every agent has ten children; in a *chain* each has one, so the branch is as deep as it is large.
"""

from collections.abc import Iterator
from math import log
from statistics import median

from benchmarks import population
from benchmarks.measure import timed
from benchmarks.places import Place, prepared
from benchmarks.table import Table, duration, number, times
from ikigai_actors.signalling import SendSignal
from ikigai_actors.units import write_alone
from supervisors.signals import Signal

SIZES = (1_000, 10_000, 100_000)

NOW = 1_800_000_000_000

RAW = """
UPDATE agents SET status = 'dead', turn = 0, epoch = epoch + 1, ended_at = 1, exit_cause = 'killed', exit_reason = 'x'
 WHERE parent_uuid IS NOT NULL"""

SHAPES = {"tree": 10, "chain": 1}
"""How many children each agent has."""


def run(places: list[Place], quick: bool) -> Iterator[Table]:
    """Kill branches of each size and shape."""
    table = Table(
        "Kill an agent and all its descendants",
        ("database", "shape", "descendants", "kill", "for each", "raw", "kill / raw", "exponent"),
        notes=[
            "Medians; of 100,000 one run. The exponent is that of the time from one size to the next; 1 is linear.",
            "Raw: an UPDATE of the dead and a bulk insert of as many mails. The kill also finds and locks them.",
        ],
    )
    for place in places:
        for shape, fan_out in SHAPES.items():
            before: tuple[int, float] | None = None
            for size in SIZES[:2] if quick else SIZES:
                repetitions = 1 if quick or size == SIZES[-1] else 3
                runs = [(_kill(place, fan_out, size), _write(place, fan_out, size)) for _ in range(repetitions)]
                ours, raw = (median(values) for values in zip(*runs, strict=True))
                exponent = "" if before is None else number(log(ours / before[1]) / log(size / before[0]))
                table.add(
                    place.name, shape, number(size), duration(ours), duration(ours / size), duration(raw),
                    times(ours / raw), exponent,
                )  # fmt: skip
                before = (size, ours)
    yield table


def _kill(place: Place, fan_out: int, size: int) -> float:
    database = place.fresh()
    try:
        top = population.branch(database, size, fan_out)[1]
        store = prepared(database.url)
        try:
            taken, done = timed(lambda: write_alone(store, SendSignal(top, Signal.KILL, NOW, spread=True)))
        finally:
            store.close()
        if len(done.dead) != size + 1:
            raise AssertionError(f"Expected {size + 1} deaths, got {len(done.dead)}")
        return taken
    finally:
        database.drop()


def _write(place: Place, fan_out: int, size: int) -> float:
    database = place.fresh()
    try:
        root, *dead = population.branch(database, size, fan_out)
        mails = [(root, place, uuid, "exit", "killed: x", 1, None) for place, uuid in enumerate(dead, 1)]
        connection = database.connect()
        try:

            def write() -> None:
                connection.execute(RAW)
                database.insert_mail(connection, mails)

            return timed(write)[0]
        finally:
            connection.close()
    finally:
        database.drop()
