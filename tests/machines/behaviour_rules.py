"""`BehaviourMachine`: an `AgentTreeMachine` with experiments: histories are searched from, bisected and replayed.

What was cut off goes on when its rule comes again. Trials are agents like all others to whoever prompts, forks, clears,
kills, prunes or exports them meanwhile; and so is the agent whose history is looked at, while trials are born.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ikigai_actors.agent.builtin_calls.table import BUILTIN_CALLS
from ikigai_actors.agent.turn.state import Phase, State
from ikigai_actors.behaviour.bisections import bisect, places_of
from ikigai_actors.behaviour.book import Book
from ikigai_actors.behaviour.cases import MODES, ReplayCase, cases_of
from ikigai_actors.behaviour.experiment import Experiment
from ikigai_actors.behaviour.plans.bisect import Bisection
from ikigai_actors.behaviour.plans.each import Each
from ikigai_actors.behaviour.plans.plan import GO, Verdict
from ikigai_actors.behaviour.plans.search import MCTS, Beam, BestOf, SearchPlan
from ikigai_actors.behaviour.regressions import regress
from ikigai_actors.behaviour.replays import replay
from ikigai_actors.behaviour.runs import RunConfig
from ikigai_actors.behaviour.searches import kept, search
from ikigai_actors.behaviour.trials import TrialRun
from ikigai_actors.behaviour.turns import Turn, recorded
from ikigai_actors.errors import IkigaiError, NotABoundary
from ikigai_actors.providers.base import Reply, Request, ToolCall, Usage
from ikigai_actors.providers.scripted import ScriptedReply
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.system.births import position
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE, Stage
from ikigai_actors.testing.machine.fixtures import SLOW, TOKEN, WORK, Work
from ikigai_actors.testing.machine.history_oracle import Copy
from ikigai_actors.testing.machine.machine import AgentTreeMachine
from ikigai_actors.testing.machine.model import at_work
from ikigai_actors.testing.simulation.changes import StoredChange
from ikigai_actors.testing.simulation.process import Broken
from ikigai_actors.tools.function import Tool
from ikigai_actors.tools.policy import Policy, ToolTraits
from tests.machines.experiment_oracle import Beginning, Bounds, ExperimentOracle

BOUNDS = Bounds(most=8, parallel=3)
PLANS: tuple[SearchPlan, ...] = (MCTS(6), Beam(1, 2), BestOf(4))

LITTLE, PLENTY = 2_000, 10**8
"""Tokens that a search may spend which ends with its budget, and one that is granted more."""

COST = Usage(0, LITTLE // 2)
"""Of most replies in trials."""

FROM_TRIAL = "of-a-trial"
"""What nobody hears of."""

PUBLISH, GLANCE, PEEK = "publish", "glance", "peek"
"""Tools that models call in trials alone: one that asks, one that runs there, and one that only reads as well."""

ACT, USE, LOOK = "act", "use", "look"
"""The prompts that have the model of a trial call: what the agent itself does, what tools do, and what may run."""

_ACTS: Mapping[str, Mapping[str, Any]] = {
    "send": {"to": "root", "body": FROM_TRIAL},
    "fork": {"prompt": FROM_TRIAL},
    "document_write": {"path": "plan.md", "body": FROM_TRIAL},
    "remind": {"text": FROM_TRIAL, "after": 1},
    "join_group": {"group": FROM_TRIAL},
    "rename": {"name": FROM_TRIAL},
    "kill": {"agent": "root", "reason": FROM_TRIAL},
    "merge": {"agent": "root"},
    "wait": {"timeout": 1},
    "read_mail": {},
    "compact": {"focus": FROM_TRIAL},
    "exit": {"result": FROM_TRIAL},
}
assert _ACTS.keys() <= BUILTIN_CALLS.keys()

CALLED: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]] = {
    ACT: [*_ACTS.items(), ("send", {"to": "group:tea", "body": FROM_TRIAL})],
    USE: [(WORK, {TOKEN: FROM_TRIAL}), (PUBLISH, {TOKEN: FROM_TRIAL}), (PEEK, {TOKEN: FROM_TRIAL})],
    LOOK: [(GLANCE, {TOKEN: FROM_TRIAL})],
}
"""What the model of a trial calls that is prompted so."""

LEFT = "left"
OPTIONS = [LEFT, USE, ACT, LOOK]
PROBE = "left or right?"

BACK = st.sampled_from((0, 0, 1, 2, 4))
"""So many positions before its end a history is looked at."""
PLAN = st.sampled_from(range(len(PLANS)))
POOR = st.sampled_from((False, False, True))

PROMPTS = st.sampled_from(sorted(CALLED))
BEFORE = st.sampled_from(("fork", "fork", "clear", "adopt", "keep", "restart", "undo", "compact", "resume", "kill", ""))
"""What is done with a trial before it is prompted."""

Then = tuple[str, str]
AFTERWARDS = st.tuples(BEFORE, PROMPTS)
"""What is done with a trial when its experiment has ended, as `BehaviourRules.prompt_trial` does it."""

TYPED = "typed"
BETWEEN = ("", "clear", "undo", TYPED)
"""What stands between the turns of an agent whose history is looked at; or both must give a value."""

MEANWHILE = st.sampled_from(("", "", "grow", "kill", "prune", "prompt trial", "kill trial"))
"""What is done with the agent that is looked at, or with a trial, while trials are judged."""


class CalledInTrials(Work):
    """A tool that nobody but the model of a trial calls."""

    def __init__(self, name: str, traits: ToolTraits) -> None:
        """Make one with this name."""
        super().__init__()
        self.name, self.traits = name, traits


class BehaviourRules(Stage):
    """The part of a machine that has these rules."""

    experiments: ExperimentOracle
    """Follows the experiments of the world."""

    def tools(self) -> list[Tool]:
        asks, reads = ToolTraits(policy=Policy.ASK), ToolTraits(read_only=True)
        self.outside = [CalledInTrials(PUBLISH, asks), CalledInTrials(PEEK, reads)]
        return [*super().tools(), *self.outside, CalledInTrials(GLANCE, reads)]

    def options(self) -> dict[str, Any]:
        return {**super().options(), "approvals": "ask"}

    def at_work(self) -> dict[str, State]:
        """Let a person approve what waits for that, and then look who is in the middle of a turn."""
        for call in self.system.approvals.pending():
            self.attempt(partial(self.system.approvals.approve, call))
        return super().at_work()

    def watchers(self) -> "tuple[Callable[[Sequence[StoredChange]], None], ...]":
        self.experiments = ExperimentOracle(self.world, self.ledger.oracle, BOUNDS, FROM_TRIAL)
        return (*super().watchers(), self.experiments.committed)

    def comes_to_rest(self) -> None:
        for uuid in self.experiments.begun:
            self.attempt(partial(self._grant, uuid))
        super().comes_to_rest()
        for uuid in self.experiments.begun:
            self.attempt(partial(self._book_of, uuid), partial(self.experiments.check_function, uuid))
        if ran := [trial.name for trial in (self.work, *self.outside) if trial.runs[FROM_TRIAL]]:
            raise Broken(f"inside: {', '.join(ran)} ran in a trial")

    def serves(self) -> bool:
        """Whether nobody waits for a budget; then an answer may be long in coming."""
        waiting = (state.phase is Phase.WAITING_FOR_BUDGET for state in at_work(self.system).values())
        return not any(waiting) and super().serves()

    def _book_of(self, uuid: str) -> Book:
        return Book(uuid, self.system.handle(uuid).history(all=True))

    def _grant(self, uuid: str) -> None:
        agent = self.system.handle(uuid)
        status = agent.budget
        if status is not None and status.owner == uuid and status.granted["tokens"] < PLENTY:
            agent.grant(tokens=PLENTY, timeout=PATIENCE)

    def _answer(self, request: Request) -> ScriptedReply:
        tape, last = self.experiments.tapes.get(request.agent), request.messages[-1]["content"][-1]
        if tape is None:
            return super()._answer(request)
        if last.get("text") == LEFT:
            return SLOW  # others may answer first
        if (called := CALLED.get(last.get("text"))) is not None:
            calls = tuple(ToolCall(name, arguments, f"c{n}") for n, (name, arguments) in enumerate(called))
            return Reply(tool_calls=calls, usage=COST)
        copy = self.ledger.oracle.histories[request.agent]
        made = sum(kind == Kind.ASSISTANT for _, kind, _, _ in copy.written[copy.fork :])
        again = [*tape.record, *(tape.record[:1] if tape.effects["missing"] == "tell" else [])]
        if made < len(again):  # as was recorded, and then the first of them once more
            return Reply(tool_calls=(ToolCall(*again[made][:2], f"r{made}"),), usage=COST)
        return Reply("ok", usage=COST)

    # Rules

    @rule(who=AGENTS, back=BACK, which=PLAN, warm=st.booleans(), meanwhile=MEANWHILE, poor=POOR, then=AFTERWARDS)
    def search_history(
        self, who: int, back: int, which: int, warm: bool, meanwhile: str, poor: bool, then: Then
    ) -> None:
        """A history is searched from; or the search that was begun with this plan goes on."""
        known = self.experiments.begun.items()
        begun = [(uuid, terms.terms) for uuid, terms in known if terms.terms.get("seed") == which]
        for uuid, _ in begun:
            self.attempt(partial(self._grant, uuid))

        def act(agent: AgentRef, under: AgentRef) -> None:
            of, place = (begun[0][1]["of"], begun[0][1]["at"]) if begun else self._place(agent, back)
            draw = random.Random(which).randrange
            self.experiments.beginning = Beginning(
                [(of, place)], lambda: PLANS[which].begin(lambda _: OPTIONS, draw), verdict_on
            )
            search(
                self.system.handle(of),
                self._judge(of, meanwhile),
                plan=PLANS[which],
                options=OPTIONS,
                at=place,
                under=under,
                parallel=BOUNDS.parallel,
                seed=which,
                warm=warm,
                tools=[GLANCE],
                budget={"tokens": LITTLE} if poor else None,
            )

        self._try(who, act, then)

    @rule(who=AGENTS, back=BACK, asks=st.booleans(), steps=st.booleans(), meanwhile=MEANWHILE, then=AFTERWARDS)
    def bisect_history(self, who: int, back: int, asks: bool, steps: bool, meanwhile: str, then: Then) -> None:
        """The first bad turn of a history, or its first bad step, is looked for."""

        def act(agent: AgentRef, under: AgentRef) -> None:
            of, end = self._place(agent, back)
            _, _, places = places_of(agent, end, steps)
            self.experiments.beginning = Beginning(
                [(of, place) for place in places],
                lambda: Bisection(len(places), PROBE if asks else GO, most=BOUNDS.most),
                verdict_on,
            )
            bisect(
                agent,
                self._judge(of, meanwhile),
                probe=PROBE if asks else None,
                steps=steps,
                at=end,
                under=under,
                most=BOUNDS.most,
                parallel=BOUNDS.parallel,
                tools=[GLANCE],
            )

        self._try(who, act, then)

    @rule(
        who=AGENTS,
        each=st.sampled_from(MODES),
        missing=st.sampled_from(("stop", "tell")),
        samples=st.integers(1, 2),
        compares=st.booleans(),
        meanwhile=MEANWHILE,
        then=AFTERWARDS,
    )
    def replay_history(
        self, who: int, each: str, missing: str, samples: int, compares: bool, meanwhile: str, then: Then
    ) -> None:
        """The latest turns of a history are replayed; or a change is compared with none."""
        arms = ["change", "baseline"] if compares else ["change"]

        def act(agent: AgentRef, under: AgentRef) -> None:
            turns, cases = _few(recorded(agent), each, BOUNDS.most // (samples * len(arms)))
            if not turns:
                return
            prompts = [GO if case.start.go else str(case.start.prompt) for case in cases]
            after = [case.after for case in cases]
            self.experiments.beginning = Beginning(
                [(case.start.of, case.start.at) for case in cases],
                lambda: Each(prompts, samples=samples, arms=arms, after=after),
                replayed=[turn.opens for turn in turns],
            )
            how: dict[str, Any] = {"each": each, "missing": missing, "samples": samples, "under": under}
            how["parallel"] = BOUNDS.parallel
            if compares:
                judge = self._judge(agent.uuid, meanwhile)

                def check(_: Turn, again: Turn) -> float:
                    judge(again.agent)
                    return 1.0

                regress(turns, change={"max_tokens": 50}, check=check, **how)
            else:
                replay(turns, **how)

        self._try(who, act, then)

    @rule(who=AGENTS, between=st.sampled_from(BETWEEN))
    def change_between_turns(self, who: int, between: str) -> None:
        """An agent has two turns under different settings; between them, it may be cleared, or the first taken back."""
        for tokens in (200, 300):
            self.attempt(partial(self._set_tokens, who, tokens))
            calls = [ToolCall("check_mail"), *([ToolCall("give_result", {"result": 3})] if between == TYPED else [])]
            self.script(self.agent(who), *(Reply("", (call,)) for call in calls))
            self.prompted(self.agent(who), "check", **({"output": int} if between == TYPED else {}))
            self.attempt(self.world.settle)
            if tokens == 200 and between not in ("", TYPED):
                self.attempt(lambda: getattr(self.agent(who), between)(timeout=PATIENCE))

    def _set_tokens(self, who: int, tokens: int) -> None:
        self.agent(who).configure(max_tokens=tokens, timeout=PATIENCE)

    @rule(which=st.integers(0, 7), before=BEFORE, said=PROMPTS, back=st.integers(0, 6))
    def prompt_trial(self, which: int, before: str, said: str, back: int) -> None:
        """A person prompts a trial, or a fork of one, perhaps after something that might set it free."""
        trials = [uuid for trial in self.experiments.begun.values() for uuid in trial.trials]
        if not trials:
            return
        uuid = trials[which % len(trials)]
        if before == "restart":
            self.ledger.open.clear()
            self.attempt(lambda: self.world.reopen(resume=True))
        elif before == "fork":
            self.attempt(lambda: self._fork_trial(self.system.handle(uuid), said, back))
        elif before == "kill":
            self.kill_agent(self.system.handle(uuid), spread=False)
        elif before == "compact":
            self.attempt(lambda: self.system.handle(uuid).compact(timeout=PATIENCE))
        elif before == "adopt":
            self.attempt(lambda: self.system.root.adopt(self.system.handle(uuid), timeout=PATIENCE))
        elif before == "keep":
            self.attempt(lambda: self._keep(uuid))
        elif before:
            self.attempt(lambda: getattr(self.system.handle(uuid), before)(timeout=PATIENCE))
        self.prompted(self.system.handle(uuid), said)
        self.attempt(self.world.settle)

    def _fork_trial(self, trial: AgentRef, said: str, back: int) -> None:
        """Have a trial forked at its head, or before its birth."""
        history = self.ledger.oracle.histories[trial.uuid]
        at = self._place(trial, history.head - history.fork + back - 1)[1]
        self.ledger.known.setdefault(trial.fork(said, at=at if back else None, timeout=PATIENCE).uuid)

    def _keep(self, uuid: str) -> None:
        """Fork a trial out, once it is judged."""
        [whose] = [key for key, begun in self.experiments.begun.items() if uuid in begun.trials]
        book = self._book_of(whose)
        [number] = [trial.number for trial in book.trials.values() if trial.agent == uuid]
        if number in book.judged and "of" in (book.terms or {}) and len(self.living()) < self.LIMIT:
            kept(Experiment(self.system.handle(whose), book, RunConfig()), number, None)

    def _judge(self, of: str, meanwhile: str) -> Callable[[Any], Verdict | None]:
        """A judge of trials of a history; as it is called first, something is done meanwhile."""
        left = [meanwhile]

        def judge(run: TrialRun | AgentRef) -> Verdict | None:
            agent = run.agent if isinstance(run, TrialRun) else run
            with suppress(IkigaiError):
                self._do(left.pop() if left else "", agent.system.handle(of), agent)
            return verdict_on(run.trial.number) if isinstance(run, TrialRun) else None

        return judge

    def _do(self, what: str, looked_at: AgentRef, trial: AgentRef) -> None:
        if what == "grow":
            looked_at.configure(max_tokens=400, timeout=PATIENCE)
            self.note_prompt("more", looked_at.prompt("more"))
        elif what in ("kill", "prune"):
            self.ledger.ended.update(record.uuid for record in looked_at.kill(timeout=PATIENCE))
        if what == "prune":
            self.upkeep.before = self.world.clock.now_ms() + 1
            prune_logs(self.system._store, self.upkeep.before, self.world.clock.now_ms())
        elif what == "prompt trial":
            self.note_prompt(USE, trial.prompt(USE))
        elif what == "kill trial":
            self.ledger.ended.update(record.uuid for record in trial.kill(timeout=PATIENCE))

    def _place(self, agent: AgentRef, back: int) -> tuple[str, int]:
        """An agent, and the last position at which it can be forked, so many before its end."""
        place = max(0, self.ledger.oracle.histories[agent.uuid].head - back)
        while True:
            try:
                return agent.uuid, position(agent.system, agent.uuid, place)
            except NotABoundary:
                place -= 1

    def _try(self, who: int, experiment: Callable[[AgentRef, AgentRef], Any], then: Then) -> None:
        """Have an experiment made below an agent that runs, of one that has had a turn; and then go on with a trial."""
        if len(self.living()) >= self.LIMIT:
            return
        histories = self.ledger.oracle.histories

        def have_turns() -> list[str]:
            known = (uuid for uuid in self.ledger.known if uuid != self.system.root.uuid and uuid in histories)
            return [uuid for uuid in known if _has_a_turn(histories[uuid])]

        if not have_turns():
            self.fork_of(self.agent(0))
            self.change_between_turns(len(self.ledger.known) - 1, BETWEEN[who % len(BETWEEN)])
        uuids, running = have_turns(), [record.uuid for record in self.living() if record.status == "running"]
        if uuids and running:
            of, under = uuids[who % len(uuids)], running[who % len(running)]
            self.attempt(lambda: experiment(self.system.handle(of), self.system.handle(under)))
        self.prompt_trial(who, *then, back=who)


class BehaviourMachine(BehaviourRules, AgentTreeMachine):
    """Drives a tree of agents, and experiments. Its laws are those of `AgentTreeMachine` and of `ExperimentOracle`."""


def verdict_on(number: int) -> Verdict | None:
    """The verdict on a trial, which depends on its number alone."""
    return None if number % 4 == 3 else Verdict(number % 3 / 2)


def _has_a_turn(history: Copy) -> bool:
    return any(kind == Kind.USER for _, kind, _, _ in history.written[history.fork :])


def _few(turns: Sequence[Turn], each: str, most: int) -> tuple[list[Turn], list[ReplayCase]]:
    """The latest turns that make no more cases than so many, and their cases."""
    few = list(turns)
    while len(cases := cases_of(few, each, {}) if few else []) > most:
        few.pop(0)
    return few, cases
