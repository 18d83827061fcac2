"""Rows that change in place, read as they were at earlier moments: the invariant ``former``.

    former      as of a moment at which nothing was under way, the rows that change in place are, with table
                ``former``, what a copy of the database has that was made then

A moment after which somebody has set a clock is forgotten: stamps after it may be earlier. A row that was made or
changed before a clock was set back may have a later stamp than a moment after the setting. At such a moment it is not
expected, and a value that was changed so is not compared.
"""

import json
from typing import Any

from ikigai_actors.store.base import Transaction
from ikigai_actors.testing.simulation.process import Broken
from ikigai_actors.testing.simulation.world import Simulation

AFTER_EVERYTHING = 2**62
"""A time later than all times in a run."""

CLOCKS_DIFFER = 1_000
"""The most milliseconds by which the clocks of two hosts differ, unless a clock was set."""

STRICT = ("limit", "strict")
"""The part and key of the value with a budget's strictness and its time of creation."""

Then = dict[tuple[str, str, str], Any]
"""The values at a time, by agent, part and key."""


def as_of(tx: Transaction, at: int) -> Then:
    """Return the rows that change in place as they were at a time, in milliseconds since 1970."""
    facts = _today(tx, at)
    columns = ["agent_uuid", "what", "key", "until", "value"]
    rows = [row for batch in tx.schema.scan("former", columns) for row in batch if row[3] > at]
    for uuid, what, key, _, value in sorted(rows, key=lambda row: -int(row[3])):
        timer = json.loads(value) if what == "timer" else None
        facts[uuid, what, key] = value if timer is None else (timer[0], timer[8], timer[10])
    return _made_by(facts, at)


def _made_by(facts: Then, at: int) -> Then:
    """Return the values, except values of rows that were made after a time."""
    later = {place[0] for place, value in facts.items() if place[1:] == STRICT and int(value.split()[1]) > at}
    return {
        place: value
        for place, value in facts.items()
        if not _is_of_later(place[1], value, at) and not (place[1] == "limit" and place[0] in later)
    }


def _today(tx: Transaction, at: int) -> Then:
    """Return the values of the present rows. An agent that died after the time counts as running."""
    facts: Then = {}
    supervision = ["strategy", "intensity", "period", "on_orphan"]
    for batch in tx.schema.scan("agents", ["uuid", "supervisor_uuid", "name", "status", "ended_at", *supervision]):
        for uuid, supervisor, name, status, ended, *rules in batch:
            facts[uuid, "supervisor", ""], facts[uuid, "name", ""] = supervisor, name or ""
            facts[uuid, "status", ""] = "running" if ended is not None and ended > at else status
            facts[uuid, "strategy", ""] = " ".join(map(str, rules))
    for batch in tx.schema.scan("groups", ["agent_uuid", "name", "joined_at"]):
        facts |= {(uuid, "group", group): str(joined) for uuid, group, joined in batch}
    for batch in tx.schema.scan("timers", ["agent_uuid", "id", "due_at", "latest", "created_at"]):
        facts |= {(uuid, "timer", str(number)): (due, latest, made) for uuid, number, due, latest, made in batch}
    for batch in tx.schema.scan("budgets", ["owner", "strict", "created_at"]):
        facts |= {(owner, *STRICT): f"{strict} {made}" for owner, strict, made in batch}
    for batch in tx.schema.scan("limits", ["budget", "unit", "granted"]):
        facts |= {(owner, "limit", unit): str(granted) for owner, unit, granted in batch}
    return facts


def _is_of_later(what: str, value: Any, at: int) -> bool:
    """Return whether a value was made after a time; for the value of a limit, whether there is no limit."""
    match what:
        case "group":
            return int(value) > at
        case "timer":
            return bool(value[2] > at)
        case "limit":
            return not value
    return False


class FormerOracle:
    """Records the values of rows at moments when nothing was under way."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._known: dict[int, tuple[Then, set[tuple[str, str, str]]]] = {}
        """For each moment, the values, and the places that were changed at a stamp after it."""
        self._set: tuple[float, ...] = ()

    def check(self, apart: int = 0) -> None:
        """Check the values of all recorded moments, and record the present one, at which nothing is under way.

        ``apart``: the milliseconds by which clocks may differ. Afterwards at least this time passes.
        """
        clocks = (self._world.clock.wrong, *(host.process.clock.wrong for host in self._world.hosts if host.running))
        if clocks != self._set:
            self._known.clear()
            self._set = clocks
        store = self._world.process.looked_at
        for at, (state, changed_later) in self._known.items():
            then = store.read(lambda tx: as_of(tx, at))  # noqa: B023 - it is read at once
            agents = {place[0] for place in state}
            if wrong := {
                place
                for place in {*then, *state} - changed_later
                if place[0] in agents and then.get(place) != state.get(place)
            }:
                place = min(wrong)
                raise Broken(f"former: as of {at} {place} is {then.get(place)!r}, and then it was {state.get(place)!r}")
        now = self._world.clock.now_ms() + apart
        state = _made_by(store.read(lambda tx: as_of(tx, AFTER_EVERYTHING)), now)
        then = store.read(lambda tx: as_of(tx, now)) if any(clocks) else state
        self._known[now] = state, {place for place in {*then, *state} if then.get(place) != state.get(place)}
