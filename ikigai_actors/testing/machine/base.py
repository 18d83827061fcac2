"""The base of the rules of both machines: the world, the acknowledged results, and the replies of models."""

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.agent.turn.state import State
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.errors import AlreadyMerged, IkigaiError, StoreError, StoreUnavailable, SystemClosed
from ikigai_actors.providers.base import Provider, Reply, Request, ToolCall
from ikigai_actors.providers.scripted import ScriptedReply, Stream
from ikigai_actors.records.agents.registry import AgentRecord, descendants
from ikigai_actors.records.mail.prompts import waiting_prompts
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.system.receipts import Receipt
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.testing.machine.arrival_oracle import ArrivalOracle
from ikigai_actors.testing.machine.commit_invariants import CommitCheck
from ikigai_actors.testing.machine.delivery_oracle import DeliveryOracle
from ikigai_actors.testing.machine.fixtures import (
    GIVEN,
    NOTES,
    TOKEN,
    WORK,
    Notes,
    OwnCode,
    Work,
    look_around,
    notes_of,
)
from ikigai_actors.testing.machine.former_oracle import FormerOracle
from ikigai_actors.testing.machine.group_oracle import TO_GROUP, GroupOracle
from ikigai_actors.testing.machine.hash_oracle import HashOracle
from ikigai_actors.testing.machine.interrupt_oracle import InterruptOracle
from ikigai_actors.testing.machine.key_oracle import KeyOracle, keyed_text
from ikigai_actors.testing.machine.memory_check import MemoryCheck
from ikigai_actors.testing.machine.merge_oracle import MergeOracle
from ikigai_actors.testing.machine.model import Ledger, at_work, check_wait
from ikigai_actors.testing.machine.question_oracle import QuestionOracle
from ikigai_actors.testing.machine.rule_oracle import RuleOracle
from ikigai_actors.testing.machine.span_oracle import SpanOracle
from ikigai_actors.testing.machine.stamp_oracle import StampOracle
from ikigai_actors.testing.machine.timer_oracle import TimerOracle
from ikigai_actors.testing.machine.tree_oracle import Files, TreeOracle
from ikigai_actors.testing.machine.upkeep_oracle import UpkeepOracle
from ikigai_actors.testing.machine.word_oracle import WordOracle
from ikigai_actors.testing.simulation.changes import StoredChange
from ikigai_actors.testing.simulation.process import Broken, Process, ProcessCrashed, asks_for_summary
from ikigai_actors.testing.simulation.scheduler import Endless, Stuck
from ikigai_actors.testing.simulation.world import Simulation
from ikigai_actors.tools.function import Tool
from supervisors.signals import Signal

PATIENCE = 300.0
"""The seconds after which a blocking call is given up. The call may wait for a stopped agent, or forever."""

PERIOD = 60.0
"""The period, in seconds, of a supervisor whose restarts are limited. It is as long as `comes_to_rest` waits, so that a
restart can lie exactly one period back.
"""

MOST_PERIODS = 20
"""The most periods that a run may take to come to rest."""

AGENTS = st.runner().flatmap(lambda machine: st.integers(0, machine.MOST_AGENTS * machine.MOST_HOSTS - 1))
"""The number of an agent, from 0 for agent 0. Numbers after the last agent start again, at the next host."""


class Stage(RuleBasedStateMachine):
    """The base of a state machine: the world of a run with its checks, without rules."""

    world: Simulation
    """The world of the run. Set when the run begins."""

    commits: CommitCheck
    """Checks each commit of the world."""

    timers: TimerOracle
    """Checks the timers of the world."""

    memory: MemoryCheck
    """Checks the contents of summaries and requests in the world."""

    groups: GroupOracle
    trees: TreeOracle
    """Checks the file trees, groups and monitors of the world."""

    ruled: RuleOracle
    """Checks the rules of agents about tool calls."""

    words: WordOracle
    """Checks that steering messages enter turns."""

    interrupts: InterruptOracle
    """Checks prompts that an INT interrupts."""

    keys: KeyOracle
    """Checks the calls that are made with keys."""

    deliveries: DeliveryOracle
    """Checks events and their deliveries to receivers."""

    arrivals: ArrivalOracle
    """Checks deliveries from outside."""

    questions: QuestionOracle
    """Checks questions to people."""

    upkeep: UpkeepOracle
    """Checks pruned histories and imported branches."""

    hashes: HashOracle
    """Checks the hashes of messages."""

    spans: SpanOracle
    """Checks the ends of turns, and their spans."""

    former: FormerOracle
    """Checks the values that rows had earlier."""

    LIMIT = 12
    """The most agents that live at once, so that runs stay short."""

    MOST_AGENTS = 8
    """The number of agents that rules can name."""

    MOST_HOSTS = 1
    """The number of hosts that rules can name."""

    def __init__(self) -> None:
        super().__init__()
        self.work = Work()
        self.ledger = Ledger()
        self.answers: dict[str, deque[ScriptedReply]] = {}
        """The next answers of models, by agent."""
        self.tokens = 0
        self.fact_number = 0

    # What subclasses may replace

    def provider(self) -> Provider:
        """Return the default provider: a script of drawn replies, and then ``ok``."""
        return OwnCode(self._answer)

    def providers(self) -> Mapping[str, Provider]:
        """Return further providers by name: the provider that writes summaries."""
        return {NOTES: Notes(notes_of)}

    def tools(self) -> list[Tool]:
        """Return the tools that models may call."""
        return [self.work, look_around]

    def options(self) -> dict[str, Any]:
        """Return further arguments of `ActorSystem.open`."""
        return {}

    def watchers(self) -> "tuple[Callable[[Sequence[StoredChange]], None], ...]":
        """Return the functions that check each commit of the world."""
        followed = (self.timers, self.groups, self.merges, self.upkeep, self.hashes, self.spans, self.ruled, self.trees)
        outside = (self.deliveries, self.arrivals, self.questions)
        oracles = (self.memory, self.ledger.oracle, self.commits, self.words, self.keys, *followed, *outside)
        return (*(oracle.committed for oracle in oracles), StampOracle(self.world).committed)

    def comes_to_rest(self) -> None:
        """Let everything happen that can happen, and check that no caller and no agent waits in vain."""
        raise NotImplementedError

    def crashed(self) -> None:
        """Start the process again after it has crashed within a rule."""
        self.ledger.open.clear()
        self.world.recover()

    def excuses(self, trouble: IkigaiError) -> bool:
        """Return whether a fault of the run explains that a call failed with this error."""
        return isinstance(trouble, StoreUnavailable) and self.world.luck.spent("unreadable")

    def at_work(self) -> dict[str, State]:
        """Return the agents that are in the middle of a turn, and must come to its end at rest."""
        return at_work(self.system)

    def runs(self, process: Process) -> bool:
        """Return whether calls to a process can succeed."""
        return process is self.world.process

    def serves(self) -> bool:
        """Return whether any process can answer a call."""
        return True

    # Its begin and its end

    def enter(self, context: AbstractContextManager[Simulation]) -> None:
        """Enter a new world, begin its checks, and open a system in it."""
        self._context = context
        self.world = context.__enter__()
        self.commits, self.timers = CommitCheck(self.world), TimerOracle(self.world)
        self.groups = GroupOracle(self.world)
        self.trees = TreeOracle(self.world)
        self.ruled = RuleOracle(self.world, self.commits)
        self.merges = MergeOracle(self.world, self.ledger.oracle.histories, self.commits)
        self.words = WordOracle(self.world, self.commits.agents)
        self.interrupts = InterruptOracle(self.world)
        self.keys = KeyOracle()
        self.deliveries, self.arrivals = DeliveryOracle(self.world), ArrivalOracle()
        self.questions = QuestionOracle(self.world)
        self.upkeep = UpkeepOracle(
            self.ledger.oracle, self.commits, self.ruled, self.keys, lambda what: self.world.process.broken(what)
        )
        self.ledger.pruned = self.upkeep.pruned
        self.hashes = HashOracle(self.world)
        self.spans = SpanOracle(self.world)
        self.former = FormerOracle(self.world)
        self.memory = MemoryCheck(
            self.ledger.oracle,
            lambda agent: self.commits.agents[agent].turn,
            lambda what: self.world.process.broken(what),
            f"{NOTES}:facts",
        )
        self.world.askers += [self.memory.asked, self.words.asked, self.interrupts.asked]
        if self.MOST_HOSTS == 1:  # another host that runs the agent hears of the death after the acknowledgement
            self.world.askers.append(self._asked)
        self.world.watchers += self.watchers()
        options = {"instruments": [self.spans.places], "approvals": lambda call: True, **self.options()}
        self.world.open(self.provider(), self.providers(), [*self.tools(), Files()], **options)
        self.ledger.known[self.system.root.uuid] = None

    def teardown(self) -> None:
        """Let the world come to rest, check everything once more, and close it.

        A world whose run has failed is left as it is.
        """
        if not hasattr(self, "world"):
            return
        ended = sys.exc_info()[1]  # a failure, or an example that is full: Hypothesis gives no choices any more
        try:
            if ended is None:
                self.comes_to_rest()
        except BaseException as error:
            ended = error
            raise
        finally:
            self._context.__exit__(type(ended) if ended else None, ended, ended.__traceback__ if ended else None)

    # What rules call

    @property
    def system(self) -> ActorSystem:
        """Return the system that runs."""
        return self.world.system

    def agent(self, number: int) -> AgentRef:
        """Return the agent with this number; dead agents count too."""
        return self.agents(number)[0]

    def agents(self, *numbers: int) -> list[AgentRef]:
        """Return the agents with these numbers, as handles of the host that the first number names."""
        known = list(self.ledger.known)
        return [self.system.handle(known[number % len(known)]) for number in numbers]

    def attempt(self, act: Callable[[], Any], then: Callable[[Any], None] = lambda answer: None) -> None:
        """Do something that may be refused or cut off by a crash. ``then`` gets the result if it was acknowledged."""
        try:
            answer = act()
        except ProcessCrashed:
            self.crashed()
        except (Stuck, Endless):
            raise
        except (StoreError, SystemClosed) as trouble:
            if not self.excuses(trouble):
                raise
            self._refused(trouble)
        except TimedOut as late:
            if self.serves() and not self._waits_for_person():
                raise Broken(f"quiescence: nobody is stopped or asked, and {late}") from late
            self._refused(late)
        except IkigaiError as refusal:
            self._refused(refusal)
        else:
            then(answer)

    def _waits_for_person(self) -> bool:
        """Return whether only a person can go on: an agent is stopped, or has a question that nobody has answered."""
        return any(record.status == "stopped" for record in self.living()) or any(self.system.questions.calls())

    def _refused(self, error: IkigaiError) -> None:
        self.world.note("refused", f"{type(error).__name__}: {error}")

    def worded(self, what: str, text: str) -> str:
        """Return the text for a prompt or a mark.

        Here it is ``text`` itself; a machine of several hosts makes each unique.
        """
        return text

    def fact(self) -> str:
        """Return a new unique word. Messages that contain it must be remembered."""
        self.fact_number += 1
        return f"FACT-{self.fact_number}"

    def prompted(self, agent: AgentRef, text: str = "go", **how: Any) -> None:
        """Prompt an agent without waiting for the answer. ``how`` are further arguments of `AgentRef.prompt`."""
        said = self.worded("prompt", text)
        self.attempt(lambda: agent.prompt(said, **how), lambda future: self.note_prompt(said, future))

    def note_prompt(self, text: str, future: Future[Reply]) -> None:
        """Record that a prompt waits for its answer."""
        self.ledger.open.append(future)

    def hear(self, who: int) -> None:
        """Send an agent enough prompts that its history is long enough to be summarised."""
        for text in ("one", "two", "three"):
            self.prompted(self.agent(who), f"{text} {self.fact()}")
        self.attempt(self.world.settle)  # the process may end: its handles are of no use then

    def summarise(self, who: int, answer: str, *, before: bool) -> None:
        """Have a model or a person summarise an agent's history; with ``before``, after further prompts."""
        if before:
            self.hear(who)
        if answer == GIVEN:
            self.attempt(lambda: self.agent(who).compact(text="notes of a person", timeout=PATIENCE))
            return
        named = f"{NOTES}:{answer}"
        self.attempt(lambda: self.agent(who).configure(compact_model=named, timeout=PATIENCE))
        self.attempt(lambda: self.agent(who).compact(timeout=PATIENCE))

    def fork_of(self, parent: AgentRef, prompt: str | None = None, at: int | None = None) -> None:
        """Fork a child of an agent."""
        text = None if prompt is None else self.worded("prompt", prompt)
        self.attempt(
            lambda: parent.fork(text, at=at, timeout=PATIENCE), lambda child: self.ledger.known.setdefault(child.uuid)
        )

    def prompt_once(self, agent: AgentRef, key: str) -> None:
        """Prompt an agent with a key, without waiting for the answer."""
        said = keyed_text("prompt", agent.uuid, key)
        self.attempt(lambda: agent.prompt(said, key=key), self.ledger.open.append)

    def fork_once(self, parent: AgentRef, key: str) -> None:
        """Fork a child with a key, or get the child of an earlier fork with that key."""

        def born(child: AgentRef) -> None:
            self.keys.heard(said, child.uuid)
            self.ledger.known.setdefault(child.uuid)

        said = keyed_text("fork", parent.uuid, key)
        self.attempt(lambda: parent.fork(said, key=key, timeout=PATIENCE), born)

    def forks_of(self, parent: AgentRef, prompts: Sequence[str | None]) -> None:
        """Fork several children of an agent in one unit."""
        texts = [None if prompt is None else self.worded("prompt", prompt) for prompt in prompts]

        def born(children: list[AgentRef]) -> None:
            for child in children:
                self.ledger.known.setdefault(child.uuid)

        self.attempt(lambda: parent.fork(prompts=texts, timeout=PATIENCE), born)

    def set_mark(self, agent: AgentRef, text: str) -> None:
        """Set a mark in an agent's history."""
        label = self.worded("mark", text)

        def marked(position: int) -> None:
            self.ledger.marks[agent.uuid, position] = label

        self.attempt(lambda: agent.mark(label, timeout=PATIENCE), marked)

    def merge_of(self, by: AgentRef, child: AgentRef, how: str, positions: Sequence[int] = ()) -> None:
        """Merge an agent into another one."""
        new = self.merges.news(by.uuid, child.uuid)

        def merge() -> None:
            try:
                by.merge(child, how, positions, timeout=PATIENCE)
            except AlreadyMerged:
                self.merges.check_refusal(by.uuid, child.uuid, new)
                raise

        self.attempt(merge)

    def goes_on_for(self, steps: int) -> None:
        """Take this many steps; fewer if only time can pass."""

        def run() -> None:
            for _ in range(steps):
                if self.world.agenda.quiet:
                    return
                self.world.agenda.step()

        self.attempt(run)

    def waits(self, waiter: AgentRef, agents: list[AgentRef] | None, seconds: int) -> None:
        """Let an agent wait for other agents or for mail, and check the reason why the wait ends."""
        clock = self.world.clock
        deadline, wrong = clock.now_ms() + seconds * 1000, clock.wrong

        def waited(answers: Mapping[AgentRef | str, WaitResult]) -> None:
            has_deadline = seconds and clock.wrong == wrong  # else the calendar says nothing about how long it was
            check_wait(self.system, waiter, agents, answers, deadline if has_deadline else None, clock.now_ms())

        self.attempt(lambda: waiter.wait(agents, timeout=seconds), waited)

    def send_signal(self, agent: AgentRef, signal: Signal, *, spread: bool = False) -> None:
        """Send a signal to an agent; with ``spread``, also to all agents below it."""
        self.attempt(lambda: agent.signal(signal, timeout=PATIENCE, cascade=spread), lambda _: self.signalled())

    def interrupt_behind(self, agent: AgentRef) -> None:
        """Prompt an idle agent, interrupt it at once, and prompt it again."""
        first, later = (self.worded("prompt", f"{place} {self.fact()}") for place in ("before", "after"))
        if agent.state != "idle" or self.system._store.read(lambda tx: waiting_prompts(tx, agent.uuid)):
            return
        if self.system._processes.get(agent.uuid) is not None:
            self.interrupts.sent(agent.uuid, first)
        asked = agent.prompt(first)
        self.note_prompt(first, asked)
        agent.aio.signal(Signal.INT)
        again = agent.prompt(later)
        self.note_prompt(later, again)
        self.world.settle()
        self.interrupts.check(agent.uuid, asked, again)

    def signalled(self) -> None:
        """Note that a signal was acknowledged, so that a stopped agent that goes on counts as a failure."""
        self.ledger.stopped(self.system, self.commits)

    def kill_agent(self, agent: AgentRef, *, spread: bool) -> None:
        """Kill an agent, perhaps with all agents below it.

        The agents below must then be dead, unless they were adopted meanwhile.
        """
        below = [record.uuid for record in self.below(agent.uuid)] if spread else []

        def killed(victims: list[AgentRef]) -> None:
            self.ledger.ended.update(victim.uuid for victim in victims)
            if below:
                self.ledger.check_cascade(below, self.living())

        self.attempt(lambda: agent.kill(cascade=spread, timeout=PATIENCE), killed)

    def _asked(self, request: Request) -> None:
        """Check ``dead``: no model is asked for an agent whose death was acknowledged."""
        if request.agent in self.ledger.ended and not asks_for_summary(request):
            self.world.process.broken(f"dead: agent {request.agent} asks its model, and was said to be dead")

    def below(self, top: str) -> list[AgentRecord]:
        """Return the living agents below an agent."""
        return self.system._store.read(lambda tx: descendants(tx, top))

    def send_mail(self, by: AgentRef, to: AgentRef, body: str) -> None:
        """Send a mail from an agent to another."""
        self.attempt(
            lambda: by.send(to, body, timeout=PATIENCE),
            lambda number: self.ledger.was_sent(by.uuid, to.uuid, number, body),
        )

    def steer_agent(self, agent: AgentRef, *, now: bool) -> None:
        """Send a steering message to an agent."""
        asked, text = self.world.calling or self.world.process, f"word {self.fact()}"

        def said(receipt: Receipt) -> None:
            self.words.receipts.append((asked, agent.uuid, receipt))

        self.attempt(lambda: agent.steer(text, now=now), said)

    def send_to_group(self, agent: AgentRef, group: str) -> None:
        """Send a mail from an agent to a group."""
        self.tokens += 1
        body = f"{TO_GROUP}{group} {self.tokens}"
        self.attempt(lambda: agent.send(f"group:{group}", body, timeout=PATIENCE))

    def set_timer(self, agent: AgentRef, prompt: bool, **when: Any) -> None:
        """Set a timer of an agent."""
        self.tokens += 1
        text = f"reminder {self.tokens}"
        self.attempt(
            lambda: agent.remind(text, prompt=prompt, zone="UTC", timeout=PATIENCE, **when),
            lambda number: self.ledger.timers.append((agent.uuid, number)),
        )

    def read_mail_of(self, agent: AgentRef) -> None:
        """Read an agent's mail."""
        self.attempt(lambda: agent.read_mail(timeout=PATIENCE), lambda mails: self.ledger.reads(agent.uuid, mails))

    def living(self) -> list[AgentRecord]:
        """Return the records of the living agents."""
        return [record for record in self.system.agents() if record.living]

    def script(self, agent: AgentRef, *answers: ScriptedReply) -> None:
        """Set the next replies that an agent's model will give."""
        self.answers.setdefault(agent.uuid, deque()).extend(map(self._filled_in, answers))

    def _answer(self, request: Request) -> ScriptedReply:
        left = self.answers.get(request.agent)
        return left.popleft() if left else "ok"

    def _filled_in(self, reply: ScriptedReply) -> ScriptedReply:
        if isinstance(reply, Stream) and isinstance(reply.then, Reply):
            return replace(reply, then=self._with_tokens(reply.then))
        return self._with_tokens(reply) if isinstance(reply, Reply) else reply

    def _with_tokens(self, reply: Reply) -> Reply:
        calls = []
        for call in reply.tool_calls:
            self.tokens += 1
            added = {WORK: {TOKEN: str(self.tokens)}, "send": {"to": self.system.root.uuid}}.get(call.name, {})
            calls.append(ToolCall(call.name, {**added, **call.input}))
        return Reply(reply.text, tuple(calls), reply.stop_reason)
