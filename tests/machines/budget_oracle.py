"""What is held, spent, waited for and told of budgets, as the commits tell it: the laws of `BudgetMachine`.

    held      a request leaves with a hold of its own that is committed
    once      what is held is settled once, and no cost is settled for which nothing was held
    billed    a service that counts for itself counts no more than is spent and held, at worst
    room      something is held only where each budget above has something left
    zero      nothing is held under a limit of 0
    slots     no more requests within a minute than a budget allows
    told      the owner of a budget is told once that it is nearly used, and once that somebody waits, until a grant
    order     those who wait for a budget go on in the order in which they began to
    left      at rest nothing is held that a host has left behind
    short     at rest nobody waits for what is there

That sums are those of their parts, `ikigai_actors.records.fsck.budgets` sees at each commit.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.providers.base import Request
from ikigai_actors.records.budgets.status import budget_of
from ikigai_actors.records.mail.mail import NOTICE
from ikigai_actors.store.base import Transaction
from ikigai_actors.testing.machine.commit_invariants import CommitCheck
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken, asks_for_summary
from tests.machines.budget_audit import (
    beyond,
    budgets_above,
    left_behind,
    overdue,
    waiting_for_what_is_there,
)
from tests.machines.metered_provider import Meter

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation


OF_SLOTS = 60_000
"""Milliseconds in which so many requests may be made as a budget allows a minute."""


class OpenHold(NamedTuple):
    """What is held for a request that is not over."""

    at: int
    tokens: int
    risk: int


class WaitingPlace(NamedTuple):
    """Where an agent waits."""

    budget: str
    number: int


class BudgetOracle:
    """Follows the budgets of a run."""

    def __init__(self, world: "Simulation", commits: CommitCheck, meter: Meter) -> None:
        """Make one for a world without any commit yet; ``commits`` follows it, too, and hears of each commit first."""
        self._world, self._commits, self._meter = world, commits, meter
        self.open: dict[str, OpenHold] = {}
        self.waiting: dict[str, WaitingPlace] = {}
        self._asked: dict[str, int] = {}
        """The holds with which requests have left, by agent."""
        self._spent = 0
        """What requests have cost, without what tools did."""
        self._granted: dict[tuple[str, str], int] = {}
        self._told: dict[tuple[str, str], int] = {}
        self._used: dict[str, list[int]] = {}
        """When requests were made that a budget counts by the minute."""
        self._most: dict[str, int] = {}
        """How many requests a minute a budget has allowed, at most."""

    def asked(self, request: Request) -> None:
        """Check a request that leaves."""
        if self._commits.agents[request.agent].status == "dead":
            return  # it was about to leave: its hold is spent as if it had
        hold = self.open.get(request.agent)
        if asks_for_summary(request):  # who merges the agent that is asked holds what that costs
            hold = next((asking for uuid, asking in self.open.items() if self._asked.get(uuid) != asking.at), None)
            if hold is None:
                self._broken(f"held: agent {request.agent} is asked for a summary, and nothing is held for that")
        elif hold is None:
            self._broken(f"held: agent {request.agent} asks a model, and nothing is held for that")
        elif self._asked.get(request.agent) == hold.at:
            self._broken(f"held: agent {request.agent} asks a model again with what was held at {hold.at}")
        else:
            self._asked[request.agent] = hold.at

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check one commit."""
        ran = [change for change in changes if isinstance(change, RanStatement)]
        before = dict(self.waiting)
        placed: set[str] = set()
        wrote = any(isinstance(change, Written) and change.table == "messages" for change in changes)
        limits = [self._limited(statement.parameters, wrote) for statement in ran if statement.query == "set_limit"]
        for statement in ran:
            parameters = statement.parameters
            match statement.query:
                case "keep_hold":
                    self._kept(parameters, placed)
                case "raise_holds":
                    for uuid in parameters["uuids"]:
                        held = self.open[uuid]
                        self.open[uuid] = OpenHold(held.at, held.tokens + held.risk, 0)
                case "add_pause":
                    self.waiting[parameters["agent"]] = WaitingPlace(parameters["budget"], parameters["number"])
                case "end_pauses":
                    for uuid in parameters["agents"]:
                        self.waiting.pop(uuid, None)
                        if uuid not in placed:  # it has given up its place itself: what is held is for another request
                            before.pop(uuid, None)
                case "use_slot":
                    self._slot(parameters)
        self._check_told(changes, limits)
        self._check_order(before, placed)
        if placed:
            self._check_zero(placed)
            self._check_room(placed)
        self._check_bill()

    def check_rest(self) -> None:
        """Check ``short`` and ``left``; called when nothing can happen before time passes."""
        if left := self._world.process.looked_at.read(left_behind):
            raise Broken(f"left: {left} hold something by a host that is no more")
        if wrong := self._world.process.looked_at.read(self._short):
            raise Broken(f"short: {'; '.join(wrong)}")

    def _broken(self, what: str) -> None:
        self._world.process.broken(what)

    def _kept(self, parameters: Mapping[str, Any], placed: set[str]) -> None:
        uuid = parameters["uuid"]
        if self.open.pop(uuid, None) is None and (parameters["spent_tokens"] or parameters["spent_usd"]):
            self._broken(f"once: agent {uuid} settles {parameters['spent_tokens']} tokens, and nothing is held for it")
        self._spent += parameters["spent_tokens"]
        self._asked.pop(uuid, None)
        if parameters["at"]:
            self.open[uuid] = OpenHold(parameters["at"], parameters["tokens"], parameters["risk_tokens"])
            placed.add(uuid)

    def _slot(self, parameters: Mapping[str, Any]) -> None:
        used = self._used.setdefault(parameters["budget"], [])
        used.append(parameters["now"])
        within = [at for at in used if 0 <= parameters["now"] - at < OF_SLOTS]
        if len(within) > (most := self._most.get(parameters["budget"], 0)):
            self._broken(f"slots: {len(within)} requests within a minute at budget {parameters['budget']}, of {most}")

    def _limited(self, parameters: Mapping[str, Any], wrote: bool) -> tuple[int, int]:
        """Note a row of table ``limits``; return how often its owner must be told of this, at least and at most.

        What is set to what it is already looks like a mere look at the budget; neither has an agent write (``wrote``).
        """
        key = parameters["budget"], parameters["unit"]
        granted, last, now = self._granted.get(key), self._told.get(key, 0), parameters["notified"]
        if key[1] == "requests":
            self._most[key[0]] = max(self._most.get(key[0], 0), parameters["granted"])
        self._granted[key], self._told[key] = parameters["granted"], now
        if granted != parameters["granted"]:
            return int(now > 0), now
        if wrote:
            if now < last:
                self._broken(f"told: {key[1]} of budget {key[0]} is as if nobody had been told of it")
            return int(now > last), now - last
        return int(now > last), now

    def _check_told(self, changes: Sequence[StoredChange], limits: Sequence[tuple[int, int]]) -> None:
        mails = [change.row for change in changes if isinstance(change, Written) and change.table == "mail"]
        notices = [row[4] for row in mails if row[3] == NOTICE]
        notices = [text for text in notices if "/budget " in text or text.startswith("80 % of")]
        least, most = sum(floor for floor, _ in limits), sum(ceiling for _, ceiling in limits)
        if not least <= len(notices) <= most:
            self._broken(f"told: {least} to {most} notices are due, and these are sent: {notices}")

    def _check_order(self, before: Mapping[str, WaitingPlace], placed: set[str]) -> None:
        for uuid in placed & before.keys():
            place = before[uuid]
            passed = [
                other
                for other, at in self.waiting.items()
                if at.budget == place.budget
                and at.number < place.number
                and self._commits.agents[other].status == "running"
            ]
            if passed:
                self._broken(f"order: agent {uuid} goes on, and {passed} have waited for longer")

    def _check_zero(self, placed: set[str]) -> None:
        zero = {budget for (budget, unit), granted in self._granted.items() if not granted and "agents" not in unit}
        if not zero:
            return
        for uuid, above in self._world.process.looked_at.read(lambda tx: budgets_above(tx, placed)).items():
            if empty := zero & above:
                self._broken(f"zero: something is held for agent {uuid}, and budgets {sorted(empty)} grant nothing")

    def _check_room(self, placed: set[str]) -> None:
        held = sum(self.open[uuid].tokens for uuid in placed)
        for uuid in placed:
            over = self._world.process.looked_at.read(partial(beyond, agent=uuid))
            if none := [budget for budget, tokens in over.items() if tokens >= held]:
                self._broken(f"room: tokens are held for agent {uuid}, and {none} had none left")

    def _check_bill(self) -> None:
        """The root's budget counts from the first, so that it is above all that was billed."""
        worst = self._spent + sum(request.tokens + request.risk for request in self.open.values())
        if self._meter.billed > worst and self._meter.billed > worst + (risk := self._risk()):
            self._broken(f"billed: the service counts {self._meter.billed} tokens, and {worst + risk} may be spent")

    def _risk(self) -> int:
        """What requests that are over may have cost beyond what is spent, as agent 0's budget says."""
        root = next(iter(self._commits.agents))
        status = self._world.process.looked_at.read(lambda tx: budget_of(tx, root))
        return (
            0
            if status is None
            else int(status.risk.get("tokens", 0)) - sum(request.risk for request in self.open.values())
        )

    def _short(self, tx: Transaction) -> list[str]:
        budgets = {place.budget for place in self.waiting.values()}
        running = [uuid for uuid in self.waiting if self._commits.agents[uuid].status == "running"]
        there = waiting_for_what_is_there(tx, budgets)
        return [
            *(f"agent {uuid} waits for {unit}, which are there" for uuid, unit in there),
            *(f"agent {uuid} was to go on before" for uuid in overdue(tx, running, self._world.clock.now_ms())),
        ]
