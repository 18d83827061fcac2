"""The timers of agents, checked by the commits: the invariant ``timer``.

When a timer fires, one commit writes the mail and the next time. A timer is never early, and fires once for each time.
A timer ends with its agent. At rest no timer is due.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ikigai_actors.records.mail.timers import every_timer
from ikigai_actors.store.base import Row
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation

Key = tuple[str, int]
"""An agent, and the number of its timer."""


@dataclass(slots=True)
class ExpectedTimer:
    """A timer that was set, and has neither ended nor been cancelled."""

    body: str
    kind: str
    due: int
    latest: int = 0


class TimerOracle:
    """Checks the timers of a run. The texts of timers must be unique."""

    def __init__(self, world: "Simulation") -> None:
        self._world = world
        self.open: dict[Key, ExpectedTimer] = {}
        self.over: set[Key] = set()
        """The timers that have fired for the last time, were cancelled, or ended with their agents."""
        self._bodies: dict[str, Key] = {}
        self._wrong: list[str] = []

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the timers that a commit sets, fires or ends."""
        mails = [each.row for each in changes if isinstance(each, Written) and each.table == "mail"]
        expected: dict[Key, ExpectedTimer] = {}
        dead: set[str] = set()
        for change in changes:
            if not isinstance(change, RanStatement):
                continue
            parameters = change.parameters
            match change.query:
                case "add_timer":
                    self._set(parameters)
                case "advance_timer" | "end_timer":
                    self._fired(change.query, parameters, expected)
                case "cancel_timer":
                    self._end({(parameters["agent"], parameters["id"])})
                case "bury":
                    dead.update(parameters["uuids"])
                case "end_timers":
                    self._end({key for key in self.open if key[0] in parameters["agents"]})
        if left := [key for key in self.open if key[0] in dead]:
            self._wrong.append(f"timers {left} outlive their agents")
        self._check_mails(mails, expected)
        wrong, self._wrong = self._wrong, []
        if wrong:
            self._world.process.broken(f"timer: {'; '.join(wrong)}")

    def check_acknowledged(self, timers: Sequence[Key]) -> None:
        """Check that timers that were acknowledged exist, or are over."""
        if lost := [key for key in timers if key not in self.open and key not in self.over]:
            raise Broken(f"acknowledged: timers {lost} are lost")

    def check_rest(self) -> None:
        """Check that no timer is due. Called when nothing can happen any more."""
        now = self._world.clock.now_ms()
        for timer in self._world.process.looked_at.read(every_timer):
            if timer.due_at <= now:
                raise Broken(
                    f"timer: timer {timer.id} of agent {timer.agent_uuid} was due at {timer.due_at}; it is {now}"
                )

    def _set(self, parameters: Any) -> None:
        key = parameters["agent"], parameters["id"]
        if key in self.open or key in self.over:
            self._wrong.append(f"the number of timer {key} is given twice")
        self.open[key] = ExpectedTimer(parameters["body"], parameters["fires_as"], parameters["due"])
        self._bodies[parameters["body"]] = key

    def _fired(self, query: str, parameters: Any, expected: dict[Key, ExpectedTimer]) -> None:
        key = parameters["agent"], parameters["id"]
        timer = self.open.get(key)
        if timer is None:
            self._wrong.append(f"timer {key} fires, and there is none")
            return
        if query == "end_timer":
            self._end({key})
            expected[key] = timer
            return
        if parameters["due"] <= timer.due:
            self._wrong.append(f"timer {key} was due at {timer.due}, and fires next at {parameters['due']}")
        if parameters["latest"] != timer.latest:
            expected[key] = ExpectedTimer(timer.body, timer.kind, timer.due, parameters["latest"])
        timer.due, timer.latest = parameters["due"], parameters["latest"]

    def _end(self, keys: set[Key]) -> None:
        self.over |= keys & self.open.keys()
        for key in keys:
            self.open.pop(key, None)

    def _check_mails(self, mails: Sequence[Row], expected: dict[Key, ExpectedTimer]) -> None:
        for recipient, number, _, kind, body, created_at, *_ in mails:
            key = self._bodies.get(body.partition("\n\n")[0])
            if key is None or kind == "exit":
                continue
            timer = expected.pop(key, None)
            if timer is None or (recipient, kind) != (key[0], timer.kind) or timer.latest not in (0, number):
                self._wrong.append(f"mail {number} to {recipient} says {body!r}, and timer {key} does not fire so")
            elif created_at < timer.due:
                self._wrong.append(f"timer {key} is due at {timer.due}, and fires at {created_at}")
        for key in expected:
            self._wrong.append(f"timer {key} fires, and writes no mail")
