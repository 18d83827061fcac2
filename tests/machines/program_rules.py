"""The machine of durable programs: agents of the tree whose models are programs, and what must hold for them.

The laws, by the names with which their failures begin:

    program     at rest the turn of each program is over, or waits for an agent that is stopped or interrupted
    effect      a step that may not be repeated has one effect for each key, whoever crashes
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from ikigai_actors import AgentRef, Provider, ScriptedProvider
from ikigai_actors.agent.turn.state import State
from ikigai_actors.programs import Program
from ikigai_actors.testing import AgentTreeMachine, Broken
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE, Stage
from tests.machines import program_runs
from tests.machines.program_runs import PARK_AFTER, Act, Outside, Plan, answered, task_of

PLANS: st.SearchStrategy[tuple[str, ...]] = st.lists(
    st.sampled_from(("prompt", "prompt", "wait", "first", "nap", "once", "by_key")), min_size=1, max_size=5
).map(tuple)
"""The kinds of acts of a program, behind the fork of a child and before the wait for all prompts."""


def boss(task: str) -> str:
    """Follow the plan in the prompt; any other prompt is answered at once."""
    return program_runs.lead(task) if "|" in task else "ok"


class _Fresh:
    """Programs that are made anew in each process, as they would be by an import."""

    def __iter__(self) -> Iterator[Program]:
        return iter([Program(boss)])


class ProgramRules(Stage):
    """The part of a machine that has these rules."""

    def __init__(self) -> None:
        super().__init__()
        self.outside = program_runs.OUTSIDE = Outside()
        self.leads: dict[str, None] = {}
        """The agents that were forked here as programs."""

    def providers(self) -> dict[str, Provider]:
        return {**super().providers(), "script": ScriptedProvider(answered)}

    def options(self) -> dict[str, Any]:
        return {**super().options(), "programs": _Fresh(), "park_after": PARK_AFTER}

    # Rules

    @rule(who=AGENTS, kinds=PLANS, steps=st.integers(0, 60))
    def follow_plan(self, who: int, kinds: tuple[str, ...], steps: int) -> None:
        """Fork an agent whose model is a program, and let it begin with its plan."""
        if len(self.living()) + 2 > self.LIMIT:
            return
        parent = self.agent(who)

        def born(child: AgentRef) -> None:
            self.ledger.known.setdefault(child.uuid)
            self.leads[child.uuid] = None
            self.prompted(child, task_of(self._plan(kinds)))

        self.attempt(lambda: parent.fork(model="boss", timeout=PATIENCE), born)
        self.goes_on_for(steps)

    @rule(which=st.integers(0, 3), kinds=PLANS, steps=st.integers(0, 60))
    def follow_further_plan(self, which: int, kinds: tuple[str, ...], steps: int) -> None:
        """Prompt a program with another plan."""
        if self.leads and len(self.living()) < self.LIMIT:
            lead = [*self.leads][which % len(self.leads)]
            self.prompted(self.system.handle(lead), task_of(self._plan(kinds)))
            self.goes_on_for(steps)

    def _plan(self, kinds: Iterable[str]) -> Plan:
        self.tokens += 1
        acts = (Act(kind, f"{kind}-{self.tokens}") for kind in kinds)
        return (Act("fork", f"kid-{self.tokens}"), *acts, Act("wait"))

    # Laws

    def at_work(self) -> dict[str, State]:
        """The agents in the middle of a turn, without those that wait for an agent which people must let go on."""
        return {uuid: state for uuid, state in super().at_work().items() if not self._is_held_up(uuid, set())}

    def _is_held_up(self, uuid: str, seen: set[str]) -> bool:
        awaited = set(self.system._wait_registry.awaited_by(uuid)) - seen
        records = {record.uuid: record for record in self.system.agents() if record.uuid in awaited}
        return any(
            record.status == "stopped" or record.cut_off > 0 or self._is_held_up(each, seen | awaited)
            for each, record in records.items()
        )

    @invariant()
    def no_step_is_done_again(self) -> None:
        """Check the law ``effect``."""
        keys = Counter(key for key, kind in self.outside.done if kind in ("once", "by_key"))
        if twice := [key for key, count in keys.items() if count > 1]:
            raise Broken(f"effect: steps were done again under {', '.join(twice)}")


class ProgramMachine(ProgramRules, AgentTreeMachine):
    """Drives a tree of agents, some of which are programs. Its laws are those of `AgentTreeMachine`, and the above."""
