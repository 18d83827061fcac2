"""Events for outside receivers, checked by the commits: the invariant ``delivery``.

The commit that ends a turn, or asks a person, posts that event, and no other commit does. A delivery is sent when it is
committed, under the id of its row, in the order of its agent's events, and its result is written by the host that has
the agent. At rest no delivery is due.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ikigai_actors.records.agents import registry
from ikigai_actors.records.messages.messages import ENDINGS, Kind
from ikigai_actors.records.outbox.deliveries import DeliveryKey, DeliveryRecord, deliveries_since
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation

EventPlace = tuple[str, int]
"""An agent, and a position in its log."""

_OF_MESSAGES = ("turn.done", "turn.failed", "turn.interrupted", "question.asked")


class DeliveryOracle:
    """Checks the events of a run, and the deliveries that the receiver outside got."""

    def __init__(self, world: "Simulation") -> None:
        self._world = world
        self.subscriptions: list[str] = []
        self._tries: dict[DeliveryKey, int] = {}
        self._heard = 0

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the events that a commit posts, and the results of deliveries that it records."""
        posted = set[EventPlace]()
        for change in changes:
            if not isinstance(change, RanStatement):
                continue
            parameters = change.parameters
            match change.query:
                case "add_subscription":
                    self.subscriptions.append(parameters["id"])
                case "post_event" if parameters["kind"] in _OF_MESSAGES:
                    posted.add((parameters["agent"], parameters["position"]))
                case "record_delivery":
                    self._recorded(parameters)
        if posted != (due := _events(changes)):
            self._world.process.broken(f"delivery: a commit posts events at {posted}, and makes those at {due} true")
        self._check_receipts()

    def check_rest(self) -> None:
        """Check that no delivery is due, and that the receiver got all deliveries that are recorded as received."""
        now, rows = self._world.clock.now_ms(), self._rows()
        received = [receipt.id for receipt in self._world.receiver.receipts]
        for row in due_deliveries(rows.values(), now):
            raise Broken(f"delivery: {row.key} was due at {row.due_at}; it is {now}")
        for row in rows.values():
            if row.done_at is not None and row.id not in received:
                raise Broken(f"delivery: {row.key} was received, and nobody has it")
        for (subscription, agent), places in _first_receipts(received, rows).items():
            if places != sorted(places):
                raise Broken(f"delivery: {subscription} got the events of {agent} in this order: {places}")

    def _check_receipts(self) -> None:
        """Check that each delivery received since the last commit has a row with the same id."""
        news = self._world.receiver.receipts[self._heard :]
        self._heard += len(news)
        if not news:
            return
        rows = self._rows()
        for delivery in news:
            row = rows.get(delivery.id)
            if row is None or row.key[1:4] != (delivery.agent, delivery.position, delivery.kind):
                self._world.process.broken(f"delivery: {delivery} was received, and its row is {row}")

    def _recorded(self, parameters: Any) -> None:
        """Check that the result of a delivery attempt was written by the host that has the agent."""
        key = DeliveryKey(*(parameters[name] for name in ("subscription", "agent", "position", "kind", "about")))
        row = self._rows()[key.id]
        if row.tries == self._tries.get(key, 0):
            return  # it was another one's by then
        self._tries[key] = row.tries
        owner = self._world.process.looked_at.read(lambda tx: registry.get(tx, key.agent)).owner
        if owner != parameters["host"]:
            wrong = f"delivery: host {parameters['host']} has written of {key}, and {owner} has the agent"
            self._world.process.broken(wrong)

    def _rows(self) -> dict[str, DeliveryRecord]:
        def read(tx: Transaction) -> list[DeliveryRecord]:
            return [row for subscription in self.subscriptions for row in deliveries_since(tx, subscription, 0)]

        return {row.id: row for row in self._world.process.looked_at.read(read)}


def due_deliveries(rows: Iterable[DeliveryRecord], now: int) -> list[DeliveryRecord]:
    """Return the deliveries that are due: of those that wait, the earliest of each agent for each subscription.

    The others wait for it, though their rows may have an earlier time, as they do where the calendar was set back.
    """
    earliest: dict[tuple[str, str], DeliveryRecord] = {}
    for row in sorted(rows, key=lambda row: row.key):
        if row.due_at is not None:
            earliest.setdefault(row.key[:2], row)
    return [row for row in earliest.values() if row.due_at is not None and row.due_at <= now]


def _events(changes: Sequence[StoredChange]) -> set[EventPlace]:
    """Return the agents and positions of the events that a commit causes: ends of turns, and questions to people."""
    written: dict[str, list[Row]] = {}
    closed, born = set[str](), set[str]()
    for change in changes:
        if isinstance(change, Written) and change.table == "messages":
            written.setdefault(change.row[0], []).append(change.row)
        elif isinstance(change, RanStatement):
            parameters = change.parameters
            if change.query in ("set_turn", "keep_hold") and parameters.get("turn") == 0:
                closed.add(parameters["uuid"])
            elif change.query not in ("set_turn", "keep_hold") and "register" in change.query:
                born.add(str(parameters.get("uuid")))
    lasts = {uuid: rows[-1] for uuid, rows in written.items() if uuid in closed}
    ends = {(uuid, row[1]) for uuid, row in lasts.items() if row[2] in ENDINGS | {Kind.HOOK.value}}
    asked = [row for uuid, rows in written.items() if uuid not in born for row in rows if row[2] == Kind.APPROVAL]
    return ends | {(row[0], row[1]) for row in asked if "approved" not in json.loads(row[4] or "{}")}


def _first_receipts(received: Sequence[str], rows: Mapping[str, DeliveryRecord]) -> dict[tuple[str, str], list[int]]:
    """Return by subscription and agent the positions of the events, in the order of their first receipt."""
    places: dict[tuple[str, str], list[int]] = {}
    for name in dict.fromkeys(received):
        key = rows[name].key
        places.setdefault((key.subscription, key.agent), []).append(key.position)
    return places
