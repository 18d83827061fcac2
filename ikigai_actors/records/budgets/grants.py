"""Units that let agents go on whose requests wait for a budget: grants, and checks after an amount was freed.

Waiting agents are served in the order in which they began to wait, up to the first for which too little is left. If
that one needs a grant, so do those after it, even if they could go on by themselves. One that now needs another budget
waits there, as the last. A unit serves at most `SERVED_AT_ONCE`; its answer says whether it is to be repeated. An agent
that may not go on now, because it is stopped or no host runs it, is passed over, and keeps its place: CONT, or the host
that takes it, has the budget looked at again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ikigai_actors.errors import AgentNotFound, AmbiguousAgent, BadInput, IkigaiError
from ikigai_actors.records.agents.former import keep_limit
from ikigai_actors.records.agents.registry import find, shown_name_of
from ikigai_actors.records.budgets.amounts import Held, Need, Paused
from ikigai_actors.records.budgets.budget import MOST, UNITS, BudgetStatus
from ikigai_actors.records.budgets.ceilings import MONEY, Level, time_line
from ikigai_actors.records.budgets.holds import keep_hold
from ikigai_actors.records.budgets.ledger import BudgetLedger, HearerDied, Hearers, hearers
from ikigai_actors.records.budgets.status import budget_of
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.unit import Addressed, LockedRows, RunAlone

SERVED_AT_ONCE = 100
"""The most agents that one unit lets go on."""


class Served(NamedTuple):
    """The result of a unit that has let agents go on whose requests waited for a budget."""

    budget: str
    """The uuid of the owner of the budget that was checked."""
    held: tuple[tuple[str, Held], ...] = ()
    """The agents that go on, and the reserved amount of each."""
    moved: tuple[tuple[str, Paused], ...] = ()
    """The agents that now wait for another budget or unit, and for which."""
    notified: tuple[tuple[str, str], ...] = ()
    """The notices that were sent: the recipient, and the agent that each is about."""
    again: bool = False
    """Whether further waiting agents may be able to go on."""
    due: int | None = None
    """The time of the next check, in milliseconds since 1970, as `Paused.again_at`."""

    granted: tuple[tuple[str, int], ...] = ()
    """The new totals of the granted units, by the units of table ``limits``."""
    status: BudgetStatus | None = None
    """The status of the budget after a grant."""

    @property
    def freed(self) -> tuple[str, ...]:
        """Return the owners of the budgets to be checked again."""
        return (self.budget,) if self.again else ()


class Serve(Addressed):
    """Check a budget: let waiting agents go on as far as it allows, and send its owner the notices that are due.

    Answered with `Served`.
    """

    alone = True
    concerns_others = True

    def __init__(self, budget: str) -> None:
        self.budget = budget
        self._touched: tuple[str, ...] = ()
        self._hearers: Hearers = {}

    @property
    def touches(self) -> tuple[str, ...]:
        return self._touched

    def look_up(self, tx: Transaction) -> None:
        self.find_waiting(tx)

    def find_waiting(self, tx: Transaction) -> None:
        """Find the agents that wait for the budget, and the agents that get its notices."""
        waiting = [agent for agent, *_ in tx.run("pauses_of", budget=self.budget, most=SERVED_AT_ONCE)]
        self._hearers = hearers(tx, [self.budget, *waiting])
        self._touched = tuple({*waiting, self.budget, *(hearer.uuid for hearer in self._hearers.values())})

    def write(self, tx: Transaction, locked: LockedRows) -> Served:
        self.check_hearers(locked)
        ledger = BudgetLedger(tx, locked, [self.budget, *(row.budget for row in locked.values())], self._hearers)
        level = ledger.levels.get(self.budget)
        if level is None:
            raise AgentNotFound(f"There is no budget of agent {self.budget}.", self.budget)
        try:
            self.change(tx, level, ledger.now)
            served = self._serve(tx, locked, ledger, level)
        except HearerDied:
            raise RunAlone(self) from None
        ledger.write()
        granted = tuple((unit, level.limits[unit].granted) for unit in self.changed)
        return served._replace(notified=tuple(ledger.notified), granted=granted)

    @property
    def changed(self) -> Iterable[str]:
        """Return the measures, such as ``usd``, whose limits are changed; none by default."""
        return ()

    def check_hearers(self, locked: LockedRows) -> None:
        """Raise `RunAlone` for this unit, before anything is written, if a recipient of a notice has died meanwhile."""
        if any(locked[hearer.uuid].status == "dead" for hearer in self._hearers.values()):
            raise RunAlone(self)

    def change(self, tx: Transaction, level: Level, now: int) -> None:
        """Change the limits of the budget before waiting agents go on.

        By default this does nothing; subclasses override it.
        """

    def _serve(self, tx: Transaction, locked: LockedRows, ledger: BudgetLedger, level: Level) -> Served:
        held: list[tuple[str, Held]] = []
        moved: list[tuple[str, Paused]] = []
        again, due = False, None
        waiting = tx.run("pauses_of", budget=self.budget, most=SERVED_AT_ONCE + 1)
        for place, (agent, need, unit, _) in enumerate(waiting):
            row = locked.get(agent)
            if row is None:  # it has begun to wait since the look-up, or there are more
                again = True
                break
            assert row.owner is not None  # as the query says
            placed = ledger.place(row, Need.decode(need), row.owner, self.budget)
            if not isinstance(placed, Held):
                if (placed.budget, placed.unit) != (self.budget, unit):
                    moved.append((agent, placed))
                if placed.budget == self.budget:
                    due = placed.again_at
                    moved += _held_up(tx, locked, waiting[place + 1 :], placed)
                    break
                continue
            keep_hold(tx, row, None, placed, row.owner)
            tx.run("end_pauses", agents=[agent])
            held.append((agent, placed))
        ledger.look_at(level)
        return Served(self.budget, tuple(held), tuple(moved), again=again, due=due)


def _held_up(tx: Transaction, locked: LockedRows, behind: Sequence[Row], first: Paused) -> Iterator[tuple[str, Paused]]:
    """Let agents that could go on at a time wait for a grant instead, because an agent before them needs one."""
    for agent, _, _, due in behind if first.due is None else ():
        if due is not None and agent in locked:
            tx.run("change_pause", agent=agent, unit=first.unit, due=None, at=None, need=None)
            yield agent, first._replace(again_at=None)


class Grant(Serve):
    """Raise or set the limits of a budget. Agents that wait for it go on in the same transaction.

    Answered with `Served`.

    Limits of tokens and dollars are never set below the amounts that are spent and reserved.

    Raises:
        AgentNotFound: there is no such agent.
        BadInput: the budget does not limit that unit, or would grant more than a budget can.
    """

    def __init__(self, agent: str, more: Mapping[str, int], sets: bool = False) -> None:
        """Make the unit.

        Args:
            agent: the uuid of the agent whose nearest budget grants more.
            more: the amounts, by the units of table ``limits``.
            sets: whether the amounts are the new totals, rather than additions.
        """
        super().__init__("")
        self._agent, self._more, self._sets = agent, more, sets

    def look_up(self, tx: Transaction) -> None:
        self.budget = next((str(budget) for (budget,) in tx.run("nearest_budget", uuid=self._agent)), "")
        if self.budget:
            self.find_waiting(tx)

    def write(self, tx: Transaction, locked: LockedRows) -> Served:
        if not self.budget:
            raise AgentNotFound(f"There is no agent {self._agent}.", self._agent)
        return super().write(tx, locked)._replace(status=budget_of(tx, self._agent))

    @property
    def changed(self) -> Iterable[str]:
        return self._more

    def change(self, tx: Transaction, level: Level, now: int) -> None:
        if not level.limits and not self._sets:
            raise BadInput(f"No budget limits agent {self._agent}: there is nothing to grant.")
        for unit, more in self._more.items():
            limit = level.limits.get(unit)
            name = next(name for name, of in UNITS.items() if of == unit)
            if limit is None:
                limited = ", ".join(name for name, of in UNITS.items() if of in level.limits) or "nothing"
                raise BadInput(
                    f"The budget of agent {level.owner} does not limit {name}, so it cannot be granted. It limits "
                    f"{limited}."
                )
            granted = more if self._sets else limit.granted + more
            if granted > MOST:
                raise BadInput(f"A budget grants at most {MOST:,} of {name}; this would be {granted:,}.")
            if self._sets and unit in MONEY:
                for portion in level.of(unit):  # what hosts do not use is taken back: it may be granted no more
                    portion.allotted, portion.changed = portion.taken, True
                granted = max(granted, limit.granted - level.free(unit))
            keep_limit(tx, level.owner, unit, granted, now)
            limit.granted, limit.notified, limit.changed = granted, 0, True


class GrantByAgent(Grant):
    """Raise the limits of another agent's nearest budget, on behalf of an agent. Answered with `Served`.

    The owner of the budget must be a descendant of the granting agent. So an agent cannot grant anything to itself, and
    its own budgets limit the amounts that it grants.

    Raises the errors of `Grant`, `AmbiguousAgent`, and `BadInput` for any other budget.
    """

    def __init__(self, target: str, sender: str, more: Mapping[str, int]) -> None:
        super().__init__("", more)
        self._target, self._sender = target, sender
        self._refusal: IkigaiError | None = None

    def look_up(self, tx: Transaction) -> None:
        try:
            self._agent, self._refusal = find(tx, self._target).uuid, None
        except (AgentNotFound, AmbiguousAgent) as error:
            self._agent, self._refusal = "", error
        super().look_up(tx)

    def write(self, tx: Transaction, locked: LockedRows) -> Served:
        if self._refusal is not None:
            raise self._refusal
        if (self._sender,) not in tx.run("parents_of", uuid=self.budget):
            agent, owner = (shown_name_of(tx, uuid) for uuid in (self._agent, self.budget))
            raise BadInput(
                f"The nearest budget of agent {agent} is that of agent {owner}, which is not below you: only a person, "
                "or an agent above it, grants more of it."
            )
        return super().write(tx, locked)


def time_lines(tx: Transaction, host: str) -> dict[str, int]:
    """Return when owners of budgets with a time limit get their notices, by owner, for the agents of a host."""
    return {budget: time_line(since, granted) for budget, since, granted in tx.run("time_limits", host=host)}
