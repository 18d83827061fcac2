"""`BudgetMachine` and `FleetBudgetMachine`: agents that spend, under budgets that are made, granted and cut down."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Provider, ToolCall
from ikigai_actors.providers.scripted import ScriptedReply, Stream
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE, Stage
from ikigai_actors.testing.machine.fixtures import NOTES, SLOW, WORK, notes_of
from ikigai_actors.testing.machine.fleet import FleetMachine
from ikigai_actors.testing.machine.machine import AgentTreeMachine
from ikigai_actors.testing.simulation.changes import StoredChange
from ikigai_actors.testing.simulation.faults import Faults
from ikigai_actors.testing.simulation.ownership import LEASES
from ikigai_actors.testing.simulation.schedule import Schedule
from ikigai_actors.testing.simulation.world import simulated
from ikigai_actors.testing.strategies import faults, prompts, replies, schedules
from supervisors.signals import Signal
from tests.machines.budget_oracle import BudgetOracle
from tests.machines.metered_provider import Meter, MeteredProvider
from tests.machines.spending_oracle import FORK, ROOT, TURN, WHO, SpendingOracle

GRANTED = 300_000
"""Tokens of agent 0, and so of all."""

PLENTY = {"tokens": 10**9, "agents": 10**6, "seconds": 10**7, "requests_per_minute": 5_000}
"""What is granted in the end."""

BUDGETS = st.fixed_dictionaries(
    {},
    optional={
        "tokens": st.sampled_from((0, 12_000, 40_000)),
        "requests_per_minute": st.integers(0, 2),
        "agents": st.integers(0, 2),
        "seconds": st.sampled_from((0, 30)),
        "strict": st.booleans(),
    },
)
"""Budgets of children."""


REFUSED = Stream((), then=ProviderError("overloaded", free=True), delay=5.0)
"""An answer that costs nothing, and comes late."""


class BudgetRules(Stage):
    """The part of a machine that has these rules."""

    strict = True
    """Whether agent 0's budget is never exceeded."""

    budgets: BudgetOracle
    """Follows the budgets of the world."""

    spendings: SpendingOracle
    """Follows on whose account that is spent."""

    meter: Meter
    """What the models of the world have billed."""

    # What a machine is made with

    def provider(self) -> Provider:
        return MeteredProvider(self._answer, self.meter)

    def providers(self) -> Mapping[str, Provider]:
        return {NOTES: MeteredProvider(notes_of, self.meter)}

    def options(self) -> dict[str, Any]:
        return {"budget": {"tokens": GRANTED, "strict": self.strict}, "labels": {ROOT: WHO[0]}}

    def watchers(self) -> "tuple[Callable[[Sequence[StoredChange]], None], ...]":
        self.budgets = BudgetOracle(self.world, self.commits, self.meter)
        self.world.askers.append(self.budgets.asked)
        self.spendings = SpendingOracle(self.world, self.commits)
        return (*super().watchers(), self.budgets.committed, self.spendings.committed)

    def serves(self) -> bool:
        """Whether nobody waits for a budget; then an answer may be long in coming."""
        return not self.budgets.waiting and super().serves()

    def comes_to_rest(self) -> None:
        """Everything happens that budgets allow; then they allow everything."""
        self.spends_what_is_granted()
        self.budgets.check_rest()
        self.spendings.check_rest()
        for uuid in self.ledger.known:
            self._grant_plenty(uuid)
        super().comes_to_rest()

    def spends_what_is_granted(self) -> None:
        """Everything happens that budgets allow."""
        self.attempt(self.world.settle)
        self.attempt(lambda: self.world.sleep(120))
        self.attempt(self.world.settle)

    def _grant_plenty(self, uuid: str) -> None:
        """Grant more than can be used of all that an agent's own budget limits; again until that is acknowledged."""
        status = self.system.handle(uuid).budget
        while status is not None and status.owner == uuid:
            more = {unit: PLENTY[unit] for unit, granted in status.granted.items() if granted < PLENTY[unit]}
            if not more:
                break
            self.attempt(partial(self._grant, uuid, more))
            status = self.system.handle(uuid).budget

    def _grant(self, uuid: str, more: Mapping[str, int]) -> None:
        self.system.handle(uuid).grant(**more, timeout=PATIENCE)

    # Rules

    @rule(who=AGENTS, budget=BUDGETS, prompt=st.none() | prompts())
    def fork_with_budget(self, who: int, budget: dict[str, Any], prompt: str | None) -> None:
        """An agent makes a child that has a budget of its own."""
        if len(self.living()) < self.LIMIT and set(budget) - {"strict"}:
            self.attempt(
                lambda: self.agent(who).fork(prompt, budget=budget, timeout=PATIENCE),
                lambda child: self.ledger.known.setdefault(child.uuid),
            )

    @rule(who=AGENTS, label=st.sampled_from(WHO), answers=st.lists(replies((ToolCall("fork", {}), WORK)), max_size=2))
    def prompt_for(self, who: int, label: str, answers: list[ScriptedReply]) -> None:
        """An agent works on somebody's account for a turn, and may fork in it."""
        agent = self.agent(who)
        if len(self.living()) < self.LIMIT:
            self.script(agent, *answers)
        self.prompted(agent, labels={TURN: label})

    @rule(who=AGENTS, label=st.sampled_from(WHO), prompt=st.none() | prompts())
    def fork_for(self, who: int, label: str, prompt: str | None) -> None:
        """An agent makes a child that works on somebody's account, perhaps within a turn."""
        if len(self.living()) < self.LIMIT:
            self.attempt(
                lambda: self.agent(who).fork(prompt, labels={FORK: label}, timeout=PATIENCE),
                lambda child: self.ledger.known.setdefault(child.uuid),
            )

    @rule(who=AGENTS, tokens=st.sampled_from((500, 9_000, 40_000)))
    def grant(self, who: int, tokens: int) -> None:
        """More is granted of an agent's nearest budget."""
        self.attempt(lambda: self.agent(who).grant(tokens=tokens, timeout=PATIENCE))

    @rule(who=AGENTS)
    def grant_others(self, who: int) -> None:
        """More requests and more time are granted of an agent's nearest budget."""
        self.attempt(lambda: self.agent(who).grant(requests_per_minute=1, timeout=PATIENCE))
        self.attempt(lambda: self.agent(who).grant(seconds=300, timeout=PATIENCE))

    @rule(who=AGENTS, more=st.sampled_from((-1, 0, 700, 9_000)), strict=st.booleans())
    def set_budget(self, who: int, more: int, strict: bool) -> None:
        """An agent gets a budget, or its own is set to so much more than was spent of it; -1 is nothing at all."""

        def act() -> None:
            agent = self.agent(who)
            status = agent.budget
            own = status is not None and status.owner == agent.uuid
            spent = int(status.spent.get("tokens", 0)) if own and status is not None else 0
            amounts = {"tokens": spent + more if more >= 0 else 0, **({} if own else {"strict": strict})}
            agent.set_budget(amounts, timeout=PATIENCE)

        self.attempt(act)

    @rule(who=AGENTS, more=st.sampled_from((0, 700)))
    def prompt_below_two_budgets(self, who: int, more: int) -> None:
        """An agent is to spend under two budgets, of which the lower one has enough left, and the upper one has not."""
        first = len(self.ledger.known)
        for born, above in enumerate((who, first)):
            if len(self.ledger.known) == first + born:
                self.fork_with_budget(above, {"tokens": 40_000}, None)
        if len(self.ledger.known) == first + 2:
            self.set_budget(first, more, strict=False)
            self.prompted(self.agent(first + 1))
            self.attempt(self.world.settle)

    @rule(who=AGENTS, tokens=st.sampled_from((100, 5_000)))
    def charge(self, who: int, tokens: int) -> None:
        """A tool of an agent has cost something."""
        self.attempt(lambda: self.agent(who).charge(tokens=tokens, timeout=PATIENCE))

    @rule(who=AGENTS, act=st.sampled_from(("configure", "compact", "undo", "mark")))
    def change_what_waits(self, who: int, act: str) -> None:
        """An agent is to spend what is not there, and something is done with its turn meanwhile."""
        status = self.agent(who).budget
        if status is not None and status.owner == self.agent(who).uuid:
            self.set_budget(who, 0, strict=False)
        self.prompted(self.agent(who))
        self.attempt(self.world.settle)
        done = {
            "configure": lambda agent: agent.configure(max_tokens=100, timeout=PATIENCE),
            "compact": lambda agent: agent.compact(timeout=PATIENCE),
            "undo": lambda agent: agent.undo(timeout=PATIENCE),
            "mark": lambda agent: agent.mark("there", timeout=PATIENCE),
        }
        self.attempt(lambda: done[act](self.agent(who)))

    @rule(who=AGENTS, others=st.integers(1, 3))
    def prompt_all(self, who: int, others: int) -> None:
        """Several agents spend at once."""
        for number in range(others + 1):
            self.prompted(self.agent(who + number))
        self.attempt(self.world.settle)

    @rule(who=AGENTS, signal=st.sampled_from((Signal.INT, Signal.KILL, Signal.STOP)))
    def cut_off(self, who: int, signal: Signal) -> None:
        """A reply that has begun is cut off."""
        agent = self.agent(who)
        self.script(agent, SLOW)
        self.prompted(agent)
        self.attempt(lambda: self.world.sleep(SLOW.delay * 1.5))
        self.send_signal(self.agent(who), signal)

    @rule(who=AGENTS, more=st.sampled_from((400, 2_000)))
    def refuse(self, who: int, more: int) -> None:
        """A request is refused after a while, free of charge, for whose end a child of the agent waits."""
        before = len(self.ledger.known)
        if len(self.living()) < self.LIMIT:
            self.fork_of(self.agent(who))
        if len(self.ledger.known) == before:
            return
        agent = self.agent(who)
        self.script(agent, REFUSED)
        self.prompted(agent)
        self.attempt(self.world.settle)
        self.attempt(lambda: self._squeeze(self.agent(who), more))
        self.prompted(self.agent(before))
        self.attempt(lambda: self.world.sleep(REFUSED.delay))

    def _squeeze(self, agent: AgentRef, more: int) -> None:
        """Leave an agent's own budget so much more than it has spent and holds."""
        status = agent.budget
        if status is not None and (held := int(status.held.get("tokens", 0))):
            spent = int(status.spent["tokens"]) if status.owner == agent.uuid else 0
            agent.set_budget({"tokens": spent + held + more}, timeout=PATIENCE)

    @rule(seconds=st.sampled_from((1, 59, 61)))
    def time_passes(self, seconds: int) -> None:
        """Time passes, so that requests are allowed again, or none any more."""
        self.attempt(lambda: self.world.sleep(seconds))


class BudgetMachine(BudgetRules, AgentTreeMachine):
    """Drives a tree of agents under budgets. Its laws are those of `AgentTreeMachine`, and of `BudgetOracle`."""

    @initialize(
        schedule=schedules(),
        misfortunes=st.runner().flatmap(lambda machine: faults(machine.MOST_FAULTS)),
        strict=st.booleans(),
        quarters=st.integers(2, 4),
    )
    def begin(self, schedule: Schedule, misfortunes: Faults, strict: bool = True, quarters: int = 4) -> None:
        """Open a system in a new world whose models bill."""
        self.strict, self.meter = strict, Meter(quarters)
        self.enter(simulated(schedule, faults=misfortunes))


class FleetBudgetMachine(BudgetRules, FleetMachine):
    """Drives agents of several hosts under budgets. Its laws are those of `FleetMachine`, and of `BudgetOracle`."""

    @initialize(
        hosts=st.integers(2, 3),
        schedule=schedules(),
        misfortunes=st.runner().flatmap(lambda machine: faults(machine.MOST_FAULTS)),
        strict=st.booleans(),
        quarters=st.integers(2, 4),
    )
    def begin(
        self, hosts: int, schedule: Schedule, misfortunes: Faults, strict: bool = True, quarters: int = 4
    ) -> None:
        """Open a system in every host of a new world whose models bill."""
        self.strict, self.meter = strict, Meter(quarters)
        FleetMachine.begin(self, hosts, schedule, misfortunes)

    def spends_what_is_granted(self) -> None:
        """Every host is there, and everything happens that budgets allow, without that any more goes wrong."""
        before = -1
        while before != (now := self.facts.misfortunes()):
            before = now
            self.revive()
            self.pass_leases(LEASES)
            super().spends_what_is_granted()
