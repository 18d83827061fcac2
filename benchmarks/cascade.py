"""Cascades: the time to kill an agent and all its descendants, beside what the database itself takes to write as much:
one UPDATE of as many rows, by the driver alone.

The kill is what the journal commits: who is hit, the rows, one mail that sums up the deaths to whoever hears of more
than 20, one transaction. In a *tree* every agent has ten children; in a *chain* each has one, so the branch is as deep
as it is large. Medians; of 100,000 one run. There are two raw UPDATEs: the least that marks a row as dead, and one of
the same columns as the kill, of which one more has an index. The kill also finds the rows. Erlang's are linked
processes, in memory alone.
"""

from collections.abc import Iterator
from statistics import median

from benchmarks import population
from benchmarks.measure import timed
from benchmarks.peers import erlang
from benchmarks.places import Place, prepared
from benchmarks.results import Row
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.store.unit import write_alone
from supervisors.signals import Signal

SIZES = (1_000, 10_000, 100_000)

NOW = 1_800_000_000_000

RAW = """
UPDATE agents SET status = 'dead', turn = 0, epoch = epoch + 1, ended_at = 1, exit_cause = 'killed', exit_reason = 'x'
 WHERE parent_uuid IS NOT NULL"""

SAME = """
UPDATE agents SET status = 'dead', turn = 0, awake = 0, epoch = epoch + 1, deadline = NULL, ended_at = 1,
       exit_cause = 'killed', exit_reason = 'x', exit_sender = NULL, changed = (SELECT version FROM tree WHERE one = 1)
 WHERE parent_uuid IS NOT NULL"""
"""The columns that a death writes."""

FULL = "an UPDATE of the same columns"
FULLER = f"ikigai beside {FULL}"

SHAPES = {"tree": 10, "chain": 1}
"""How many children each agent has."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Kill branches of each size and shape."""
    for place in places:
        for shape, fan_out in SHAPES.items():
            for size in SIZES[:2] if quick else SIZES:
                repetitions = 1 if quick or size == SIZES[-1] else 3
                runs = [
                    (
                        _kill(place, fan_out, size),
                        _write(place, fan_out, size, RAW),
                        _write(place, fan_out, size, SAME),
                    )
                    for _ in range(repetitions)
                ]
                ours, raw, same = (median(values) for values in zip(*runs, strict=True))
                for who, beside, limit in (("ikigai", "the UPDATE alone", raw), (FULLER, FULL, same)):
                    head = (f"kill of a {shape}", who, place.name, size, "descendants")
                    yield Row(*head, ours, "s", beside, limit)
    release = erlang.otp_release()
    who = f"Erlang {release or ''}".strip()
    for shape in SHAPES:
        for size in SIZES[:2] if quick else SIZES:
            taken = median(erlang.kill(shape, size) for _ in range(3)) if release else None
            why = "" if release else "not installed"
            yield Row(f"kill of a {shape}", who, "", size, "descendants", taken, "s", why=why)


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


def _write(place: Place, fan_out: int, size: int, update: str) -> float:
    database = place.fresh()
    try:
        population.branch(database, size, fan_out)
        connection = database.connect()
        try:
            return timed(lambda: connection.execute(update))[0]
        finally:
            connection.close()
    finally:
        database.drop()
