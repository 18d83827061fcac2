"""Rules of `AgentTreeMachine` that aim at situations which chance alone brings about too rarely."""

from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ikigai_actors.actors.futures import Future
from ikigai_actors.errors import AgentDead, ProviderError, StoreError
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.records.log.append import Append, FencingToken
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE, PERIOD, Stage
from ikigai_actors.testing.machine.fixtures import NOTES, SEEING, SLOW, SUMMARIES, WORK
from ikigai_actors.testing.simulation.process import Broken
from ikigai_actors.testing.strategies import signals
from supervisors.signals import Signal

SIGNALS = st.none() | signals()
WINDOWS = st.sampled_from((600, 2_500, 9_000))
"""Tokens that a model takes."""
WORDY = "and so on " * 60
"""A prompt of about 200 tokens."""
REFUSALS = st.sampled_from((None, "prompt is too long: 900 tokens > 500 maximum", "context_length_exceeded"))


class StatementFailed(StoreError):
    """An error of a database about one statement, and no other."""


class Failing(Unit):
    """A unit with a statement that always fails."""

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        raise StatementFailed("This statement always fails.")


class AimedRules(Stage):
    """The part of `AgentTreeMachine` that has these rules."""

    @rule(who=AGENTS, signal=SIGNALS)
    def prompt_slow_model(self, who: int, signal: Signal | None = None) -> None:
        """An agent is prompted, and its model takes its time: whatever comes next finds it in the middle of a turn."""
        agent = self.agent(who)
        self.script(agent, SLOW)
        self.prompted(agent)
        self.attempt(self.world.settle)
        if signal is not None:
            self.send_signal(self.agent(who), signal)

    @rule(who=AGENTS, signal=SIGNALS)
    def prompt_to_wait(self, who: int, signal: Signal | None) -> None:
        """An agent's model waits, by a call: whatever comes next finds it in the middle of its tools."""
        agent = self.agent(who)
        self.script(agent, Reply("", (ToolCall("wait", {"timeout": 5}),)))
        self.prompted(agent, "wait")
        self.attempt(self.world.settle)
        if signal is not None:
            self.send_signal(self.agent(who), signal)

    @rule(who=AGENTS)
    def stop_and_prompt(self, who: int) -> None:
        """An agent that is stopped is prompted: it must wait until it is continued."""
        self.send_signal(self.agent(who), Signal.STOP)
        self.prompted(self.agent(who))
        self.attempt(self.world.settle)

    @rule(who=AGENTS, length=st.integers(2, 3))
    def fork_line(self, who: int, length: int) -> None:
        """An agent gets a child, which gets one too: there is somebody below, whatever hits the upper ones."""
        above = self.agent(who)
        for _ in range(length):
            if len(self.living()) < self.LIMIT:
                self.fork_of(above)
                above = self.agent(len(self.ledger.known) - 1)

    @rule(who=AGENTS)
    def kill_line(self, who: int) -> None:
        """An agent is killed with all below it: a child, and that one's child."""
        before = len(self.ledger.known)
        self.fork_line(who, length=3)
        if len(self.ledger.known) > before:
            self.kill_agent(self.agent(before), spread=True)

    @rule(who=AGENTS, window=WINDOWS, answer=st.sampled_from(sorted(SUMMARIES)), refusal=REFUSALS)
    def fill_window(self, who: int, window: int, answer: str, refusal: str | None) -> None:
        """An agent whose model has a small window hears much; perhaps the model refuses a request as too long, too."""
        said = {"context_window": window, "compact_model": f"{NOTES}:{answer}"}
        self.attempt(lambda: self.agent(who).configure(**said, timeout=PATIENCE))
        for number in range(3):
            agent = self.agent(who)
            if refusal is not None and number == 2:
                self.script(agent, ProviderError(refusal, free=True))
            self.prompted(agent, f"{number} {self.fact()} {WORDY}")
            self.attempt(self.world.settle)

    @rule(who=AGENTS)
    def compact_again(self, who: int) -> None:
        """The model of an agent takes its time with a summary, is interrupted, and starts over; then its text comes."""
        self.hear(who)
        named = f"{NOTES}:late"
        self.attempt(lambda: self.agent(who).configure(compact_model=named, timeout=PATIENCE))
        self.attempt(lambda: self.agent(who).aio.compact())
        self.attempt(self.world.settle)
        self.send_signal(self.agent(who), Signal.INT)
        self.attempt(lambda: self.agent(who).compact(timeout=PATIENCE))

    @rule(who=AGENTS, answer=st.sampled_from(("short", "facts")))
    def uncompact_one_of_two(self, who: int, answer: str) -> None:
        """Two summaries lie over one another, and more is said; then the upper one is taken off."""
        for _ in range(2):
            self.summarise(who, answer, before=True)
        self.prompted(self.agent(who), f"and {self.fact()}")
        self.attempt(self.world.settle)
        self.attempt(lambda: self.agent(who).uncompact(timeout=PATIENCE))

    @rule(who=AGENTS, pages=st.integers(1, 4), back=st.integers(0, 12), focus=st.none() | st.just("what was seen"))
    def look_around(self, who: int, pages: int, back: int, focus: str | None) -> None:
        """A model sees much in one turn, perhaps has it summarised, and recalls what was said a while ago."""
        agent, tools = self.agent(who), [SEEING, "compact", "recall"]
        said = {"context_window": 4_500, "compact_model": f"{NOTES}:facts", "tools": tools}
        self.attempt(lambda: agent.configure(**said, timeout=PATIENCE))
        history = self.ledger.oracle.histories.get(agent.uuid)
        calls = [ToolCall(SEEING, {"place": f"place {number}"}) for number in range(pages)]
        calls += [] if focus is None else [ToolCall("compact", {"focus": focus})]
        calls.append(ToolCall("recall", {"message": max(1, history.head - back) if history is not None else 1}))
        self.script(self.agent(who), *(Reply("", (call,)) for call in calls))
        self.prompted(self.agent(who), f"look around {self.fact()}")
        self.attempt(self.world.settle)
        self.attempt(lambda: self.agent(who).configure(tools=None, timeout=PATIENCE))

    @rule(who=AGENTS)
    def fail_beside(self, who: int) -> None:
        """While an agent writes, a unit fails that may share its transaction: that one alone."""
        agent = self.agent(who)
        self.prompted(agent)
        with suppress(StatementFailed):
            self.attempt(lambda: self.system._writer.perform(Failing(), PATIENCE))
        self.attempt(self.world.settle)

    @rule(who=AGENTS, other=AGENTS)
    def prompt_and_wait(self, who: int, other: int) -> None:
        """An agent waits for another one in the middle of a turn: whatever ends that turn must wake it."""
        self.script(self.agent(other), SLOW)
        self.prompted(self.agent(other))
        self.waits(self.agent(who), [self.agent(other)], 600)

    @rule(who=AGENTS)
    def prompt_to_work(self, who: int) -> None:
        """An agent is prompted to use the tool that is not idempotent."""
        agent = self.agent(who)
        self.script(agent, Reply("", (ToolCall(WORK),)))
        self.prompted(agent, "work")

    @rule(who=AGENTS)
    def sleep_with_prompt(self, who: int) -> None:
        """An agent that is stopped keeps a prompt that waits, though nobody has used it for long; then it goes on."""
        self.send_signal(self.agent(who), Signal.STOP)
        agent, process = self.agent(who), self.world.process
        said, kept = self.worded("prompt", "go"), list[Future[Reply]]()

        def note(future: Future[Reply]) -> None:
            self.note_prompt(said, future)
            kept.append(future)

        self.attempt(lambda: agent.prompt(said), note)
        self.attempt(self.world.settle)
        if (actor := self.system._here(agent.uuid)) is not None:
            actor.sleep()
        self.attempt(self.world.settle)
        lives = process is self.world.process and agent.uuid in {one.uuid for one in self.living()}
        for future in kept:
            if lives and future.done() and isinstance(why := future.exception(), AgentDead):
                raise Broken(f"sleep: agent {agent.uuid} is not dead, and its prompt was refused: {why}")
        self.send_signal(self.agent(who), Signal.CONT)

    @rule(who=AGENTS, between=st.sampled_from(("", "clear", "summary")))
    def mark_and_rewind(self, who: int, between: str) -> None:
        """An agent sets a mark and goes back to it.

        In between it starts over, which leaves no mark to go back to; or what it hears is summarised, and taken back.
        """
        self.set_mark(self.agent(who), "here")
        if between == "clear":
            self.attempt(lambda: self.agent(who).clear(timeout=PATIENCE))
        if between == "summary":
            self.summarise(who, "short", before=True)
        self.attempt(lambda: self.agent(who).rewind(timeout=PATIENCE))

    @rule(who=AGENTS, pause=st.booleans())
    def crash_twice(self, who: int, pause: bool) -> None:
        """An agent that may be restarted once within a period crashes, and again: at once, or one period later."""
        agent = self.agent(who)
        if (above := agent.supervisor) is None:
            return
        self.attempt(lambda: above.supervise(intensity=1, period=PERIOD, timeout=PATIENCE))
        for _ in range(2):
            self.script(agent, LookupError("a defect of its own"))
            self.prompted(self.agent(who))
            self.attempt(self.world.settle)
            if pause:
                self.attempt(lambda: self.world.sleep(PERIOD))

    @rule(sender=AGENTS, recipient=AGENTS, bodies=st.lists(st.sampled_from("abc"), min_size=2, max_size=3))
    def send_and_read(self, sender: int, recipient: int, bodies: list[str]) -> None:
        """Mails of one moment are sent and read."""
        for body in bodies:
            self.send_mail(self.agent(sender), self.agent(recipient), body)
        self.read_mail_of(self.agent(recipient))

    @rule(who=AGENTS, ours=st.booleans())
    def write_of_earlier_owner(self, who: int, ours: bool) -> None:
        """``fenced``: who owned an agent once writes nothing; neither does, if there is one, somebody dead."""
        dead = sorted(self.ledger.ended)
        record = (self.system.handle(dead[who % len(dead)]) if ours and dead else self.agent(who)).record
        fence = (
            FencingToken(record.owner or "", record.epoch - 1) if ours else FencingToken("somebody else", record.epoch)
        )

        def written(answer: object) -> None:
            raise Broken(f"fenced: {fence} writes for agent {record.uuid}, which {record.owner} owns")

        self.attempt(lambda: self.system._writer.perform(Append(LogUnit(record.uuid, ()), fence), PATIENCE), written)
