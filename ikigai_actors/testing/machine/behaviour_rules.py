"""`BehaviourMachine`: an `AgentTreeMachine` with experiments: histories are searched from and bisected.

A search or a bisection that was cut off goes on when its rule comes again. Its trials are agents like all others to
whoever prompts, forks, kills, prunes or exports them meanwhile.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ikigai_actors.behaviour.bisections import bisect
from ikigai_actors.behaviour.book import Book
from ikigai_actors.behaviour.plans.plan import Verdict
from ikigai_actors.behaviour.plans.search import MCTS, Beam, BestOf, SearchPlan
from ikigai_actors.behaviour.searches import search
from ikigai_actors.behaviour.trials import TrialRun
from ikigai_actors.providers.base import Reply, Request, ToolCall
from ikigai_actors.providers.scripted import ScriptedReply
from ikigai_actors.testing.machine.base import AGENTS, Stage
from ikigai_actors.testing.machine.experiment_oracle import Bounds, ExperimentOracle, check_function
from ikigai_actors.testing.machine.fixtures import WORK
from ikigai_actors.testing.machine.machine import AgentTreeMachine
from ikigai_actors.testing.simulation.process import Broken
from ikigai_actors.testing.simulation.store import StoredChange

BOUNDS = Bounds(most=6, parallel=2)
PLANS: tuple[SearchPlan, ...] = (BestOf(4), Beam(1, 2), MCTS(6))

LEFT, CALLS = "left", "call all that there is"
PROBE = "left or right?"

FROM_TRIAL = "of a trial"
"""What nobody hears of."""

CALLED = (
    ToolCall(WORK, {"token": FROM_TRIAL}, "c1"),
    ToolCall("send", {"to": "root", "body": FROM_TRIAL}, "c2"),
    ToolCall("fork", {"prompt": FROM_TRIAL}, "c3"),
)
"""What the model of a trial calls that is told to."""


class BehaviourRules(Stage):
    """The part of a machine that has these rules."""

    experiments: ExperimentOracle
    """Follows the experiments of the world."""

    def watchers(self) -> "tuple[Callable[[Sequence[StoredChange]], None], ...]":
        self.experiments = ExperimentOracle(self.world, BOUNDS, frozenset({FROM_TRIAL}))
        return (*super().watchers(), self.experiments.committed)

    def comes_to_rest(self) -> None:
        super().comes_to_rest()
        for uuid in self.experiments.terms:
            self.attempt(partial(self._book_of, uuid), self._check_function)
        if self.work.runs[FROM_TRIAL]:
            raise Broken(f"inside: {WORK} ran in a trial")

    def _book_of(self, uuid: str) -> Book:
        return Book(uuid, self.system.handle(uuid).history(all=True))

    def _check_function(self, book: Book) -> None:
        if book.terms is not None and book.terms["verb"] == "search":
            seed = book.terms["seed"]
            plan = PLANS[seed].begin(lambda _: [LEFT, CALLS], random.Random(seed).randrange)
            check_function(book, plan, BOUNDS.parallel)

    def _answer(self, request: Request) -> ScriptedReply:
        last = request.messages[-1]["content"][-1]
        if request.agent in self.experiments.inside and last.get("text") == CALLS:
            return Reply(tool_calls=CALLED)
        return super()._answer(request)

    # Rules

    @rule(who=AGENTS, which=st.sampled_from(range(len(PLANS))), warm=st.booleans())
    def search_history(self, who: int, which: int, warm: bool) -> None:
        """A history is searched from; or the search that was begun with this plan goes on."""
        begun = [one for one in self.experiments.terms.values() if one.get("seed") == which]
        where = (begun[0]["of"], begun[0]["at"]) if begun else (self.agent(who).uuid, None)
        self._try(
            lambda: search(
                self.system.handle(where[0]),
                judged,
                plan=PLANS[which],
                options=[LEFT, CALLS],
                at=where[1],
                parallel=BOUNDS.parallel,
                seed=which,
                warm=warm,
            )
        )

    @rule(who=AGENTS, asks=st.booleans(), steps=st.booleans())
    def bisect_history(self, who: int, asks: bool, steps: bool) -> None:
        """The first bad turn of a history, or its first bad step, is looked for."""
        self._try(
            lambda: bisect(
                self.agent(who),
                judged,
                probe=PROBE if asks else None,
                steps=steps,
                most=BOUNDS.most,
                parallel=BOUNDS.parallel,
            )
        )

    def _try(self, experiment: Callable[[], Any]) -> None:
        if len(self.living()) < self.LIMIT:
            self.attempt(experiment)


class BehaviourMachine(BehaviourRules, AgentTreeMachine):
    """Drives a tree of agents, and experiments. Its laws are those of `AgentTreeMachine` and of `ExperimentOracle`."""


def judged(run: TrialRun) -> Verdict | None:
    """A verdict that depends on the trial's number alone."""
    return None if run.trial.number % 4 == 3 else Verdict(run.trial.number % 3 / 2)
