"""One interleaving, and its comparison with the same units one after another."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from urllib.parse import quote

from ikigai_actors.errors import IkigaiError, StoreError
from ikigai_actors.store import open_store
from ikigai_actors.store.base import Row
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.store.unit import write_alone
from tests.jar.gates import GatedStore, HearingStore
from tests.jar.scheduler import Crash, Scheduler
from tests.jar.world import AGENTS, Draw, Make, begin, contents
from tests.kit.databases import DEADLINE, Admin

CRASHES = 0.02
"""How likely a session ends at a gate."""

Place = tuple[int, int]
"""A session, and the number of its unit."""

Answer = tuple[object, str | None]
"""What a unit answers, or its refusal as text; and the agents that NOTIFY has named."""

Outcome = tuple[Mapping[Place, Answer], Mapping[str, list[Row]]]
"""The answer of each unit, and the tables at the end."""


@dataclass
class Interleaving:
    """What was seen of an interleaving."""

    seed: int
    words: Mapping[Place, str]
    trace: list[str]
    waits: int
    order: list[Place] = field(default_factory=list)
    """The units in the order of their commits; of those that were refused, of their ends."""
    problems: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    """What is otherwise where the units come one after another in that order."""

    def lines_of_problems(self) -> list[str]:
        """The same, if anything is wrong."""
        return [*self.lines()] if self.problems else []

    def lines(self) -> Iterator[str]:
        """The same for a person."""
        yield f"seed {self.seed}: {'; '.join(self.problems)}"
        yield from (f"  unit {place}: {self.words[place]}" for place in sorted(self.words))
        yield from (f"  {step}" for step in self.trace)
        yield from (f"  {difference}" for difference in self.differences)


def interleave(url: str, admin: Admin, seed: int, sessions: int, units: int) -> Interleaving:
    """Run units of some sessions in an order of their statements that a seed chooses, on an empty database."""
    draw = Draw(seed, sessions)
    drawn = {(who, number): draw.unit(who) for number in range(units) for who in range(sessions)}
    with closing(open_store(url)) as store:
        begin(store, sessions)
        scheduler = Scheduler(seed, admin, [_name(who) for who in range(sessions)], frozenset(AGENTS), CRASHES)
        order: list[Place] = []
        answers: dict[Place, Answer] = {}
        with ExitStack() as stack:
            threads = [
                threading.Thread(target=_session, args=(url, who, units, drawn, scheduler, order, answers))
                for who in range(sessions)
            ]
            for thread in threads:
                thread.start()
                stack.callback(thread.join, DEADLINE)
            scheduler.run()
        done = answers, contents(store)
    words = {place: text for place, (text, _) in drawn.items()}
    made = Interleaving(seed, words, scheduler.trace, scheduler.waits, order)
    made.problems += sorted(set(scheduler.missing))
    makes = {place: make for place, (_, make) in drawn.items() if answers[place] != CRASHED}
    committed = [place for place in order if place in makes]
    kept, alone = _without(done, makes), one_after_another(makes, committed, sessions)
    if alone != kept:
        made.differences += _differences(kept, alone)
        if any(one_after_another(makes, other, sessions) == kept for other in _orders(committed)):
            made.problems.append("it equals another order than that of the commits")
        else:
            made.problems.append("it equals no order of its units")
    return made


CRASHED: Answer = "the session ended", None


def _session(
    url: str,
    who: int,
    units: int,
    drawn: Mapping[Place, tuple[str, Make]],
    scheduler: Scheduler,
    order: list[Place],
    answers: dict[Place, Answer],
) -> None:
    name = _name(who)
    joined = f"{url}{'&' if '?' in url else '?'}application_name={quote(name)}"
    try:
        with closing(open_store(joined)) as store:
            for number in range(units):
                place = who, number
                gated = GatedStore(store, name, scheduler, lambda: order.append(place))  # noqa: B023
                answers[place] = _answer(gated, drawn[place][1])
                if place not in order:
                    order.append(place)
    finally:
        scheduler.ended(name)


def one_after_another(makes: Mapping[Place, Make], order: Sequence[Place], sessions: int) -> Outcome:
    """What becomes of units that run one at a time."""
    with closing(SQLiteStore(None, now_ms=lambda: 9)) as store:
        ensure_schema(store)
        begin(store, sessions)
        hearing = HearingStore(store)
        answers = {place: _answer(hearing, makes[place]) for place in order}
        return answers, contents(store)


def _answer(store: HearingStore, make: Make) -> Answer:
    try:
        return write_alone(store, make()), store.heard
    except Crash:
        return CRASHED
    except StoreError as error:
        return type(error).__name__, None
    except IkigaiError as error:
        return f"{type(error).__name__}: {error}", None


def _without(done: Outcome, kept: Mapping[Place, Make]) -> Outcome:
    """The same without the units whose sessions ended: of these nothing may be left."""
    return {place: answer for place, answer in done[0].items() if place in kept}, done[1]


def _differences(done: Outcome, alone: Outcome) -> Iterator[str]:
    """What differs, for a person."""
    for place in sorted(done[0]):
        if done[0][place] != alone[0][place]:
            yield f"unit {place}: {done[0][place]}\n    alone: {alone[0][place]}"
    for table, rows in done[1].items():
        if rows != alone[1][table]:
            more, less = set(rows) - set(alone[1][table]), set(alone[1][table]) - set(rows)
            yield f"{table}: {sorted(more, key=repr)}\n    alone: {sorted(less, key=repr)}"


def _orders(places: Sequence[Place]) -> Iterator[list[Place]]:
    """Every order of units in which those of a session follow one another."""
    if not places:
        yield []
    for place in places:
        earlier = any(other[0] == place[0] and other[1] < place[1] for other in places)
        if not earlier:
            rest = [other for other in places if other != place]
            yield from ([place, *tail] for tail in _orders(rest))


def _name(who: int) -> str:
    return f"jar {who}"
