"""Rules of `AgentTreeMachine` for situations that arise too rarely by chance."""

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
"""The sizes of a model's window, in tokens."""
WORDY = "and so on " * 60
"""A prompt of about 200 tokens."""
REFUSALS = st.sampled_from((None, "prompt is too long: 900 tokens > 500 maximum", "context_length_exceeded"))


class StatementFailed(StoreError):
    """A store error that concerns one statement only, for a unit that fails."""


class Failing(Unit):
    """A unit of writes with a statement that always fails."""

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        raise StatementFailed("This statement always fails.")


class AimedRules(Stage):
    """The rules of `AgentTreeMachine` for rare situations."""

    @rule(who=AGENTS, signal=SIGNALS)
    def prompt_slow_model(self, who: int, signal: Signal | None = None) -> None:
        """Prompt an agent with a slow model, so that the next rule finds the agent in its turn."""
        agent = self.agent(who)
        self.script(agent, SLOW)
        self.prompted(agent)
        self.attempt(self.world.settle)
        if signal is not None:
            self.send_signal(self.agent(who), signal)

    @rule(who=AGENTS, signal=SIGNALS)
    def prompt_to_wait(self, who: int, signal: Signal | None) -> None:
        """Prompt an agent whose model calls ``wait``, so that the next rule finds it running a call."""
        agent = self.agent(who)
        self.script(agent, Reply("", (ToolCall("wait", {"timeout": 5}),)))
        self.prompted(agent, "wait")
        self.attempt(self.world.settle)
        if signal is not None:
            self.send_signal(self.agent(who), signal)

    @rule(who=AGENTS)
    def stop_and_prompt(self, who: int) -> None:
        """Prompt a stopped agent. The prompt must wait until the agent is continued."""
        self.send_signal(self.agent(who), Signal.STOP)
        self.prompted(self.agent(who))
        self.attempt(self.world.settle)

    @rule(who=AGENTS, length=st.integers(2, 3))
    def fork_line(self, who: int, length: int) -> None:
        """Fork a child, a grandchild and so on, so that there are agents below others."""
        above = self.agent(who)
        for _ in range(length):
            if len(self.living()) < self.LIMIT:
                self.fork_of(above)
                above = self.agent(len(self.ledger.known) - 1)

    @rule(who=AGENTS)
    def kill_line(self, who: int) -> None:
        """Kill an agent with its child and grandchild."""
        before = len(self.ledger.known)
        self.fork_line(who, length=3)
        if len(self.ledger.known) > before:
            self.kill_agent(self.agent(before), spread=True)

    @rule(who=AGENTS, window=WINDOWS, answer=st.sampled_from(sorted(SUMMARIES)), refusal=REFUSALS)
    def fill_window(self, who: int, window: int, answer: str, refusal: str | None) -> None:
        """Fill the small window of an agent's model with prompts.

        Perhaps the model also refuses a request as too long.
        """
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
        """Interrupt a model that is writing a summary, and ask for another one; the first text arrives late."""
        self.hear(who)
        named = f"{NOTES}:late"
        self.attempt(lambda: self.agent(who).configure(compact_model=named, timeout=PATIENCE))
        self.attempt(lambda: self.agent(who).aio.compact())
        self.attempt(self.world.settle)
        self.send_signal(self.agent(who), Signal.INT)
        self.attempt(lambda: self.agent(who).compact(timeout=PATIENCE))

    @rule(who=AGENTS, answer=st.sampled_from(("short", "facts")))
    def uncompact_one_of_two(self, who: int, answer: str) -> None:
        """Make two summaries, one over the other, add messages, and take off the later one."""
        for _ in range(2):
            self.summarise(who, answer, before=True)
        self.prompted(self.agent(who), f"and {self.fact()}")
        self.attempt(self.world.settle)
        self.attempt(lambda: self.agent(who).uncompact(timeout=PATIENCE))

    @rule(who=AGENTS, pages=st.integers(1, 4), back=st.integers(0, 12), focus=st.none() | st.just("what was seen"))
    def look_around(self, who: int, pages: int, back: int, focus: str | None) -> None:
        """Let a model read much in one turn, perhaps summarise it, and recall an earlier message."""
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
        """Let a unit fail that shares a transaction with an agent's write. Only that unit may fail."""
        agent = self.agent(who)
        self.prompted(agent)
        with suppress(StatementFailed):
            self.attempt(lambda: self.system._writer.perform(Failing(), PATIENCE))
        self.attempt(self.world.settle)

    @rule(who=AGENTS, other=AGENTS)
    def prompt_and_wait(self, who: int, other: int) -> None:
        """Let an agent wait for another one that is in a turn. The end of that turn must end the wait."""
        self.script(self.agent(other), SLOW)
        self.prompted(self.agent(other))
        self.waits(self.agent(who), [self.agent(other)], 600)

    @rule(who=AGENTS)
    def prompt_to_work(self, who: int) -> None:
        """Prompt an agent to use the tool that is not idempotent."""
        agent = self.agent(who)
        self.script(agent, Reply("", (ToolCall(WORK),)))
        self.prompted(agent, "work")

    @rule(who=AGENTS)
    def sleep_with_prompt(self, who: int) -> None:
        """Let a stopped agent with a waiting prompt stay unused for long, and then continue it."""
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
        lives = process is self.world.process and agent.uuid in {record.uuid for record in self.living()}
        for future in kept:
            if lives and future.done() and isinstance(why := future.exception(), AgentDead):
                raise Broken(f"sleep: agent {agent.uuid} is not dead, and its prompt was refused: {why}")
        self.send_signal(self.agent(who), Signal.CONT)

    @rule(who=AGENTS, between=st.sampled_from(("", "clear", "summary")))
    def mark_and_rewind(self, who: int, between: str) -> None:
        """Set a mark, and go back to it.

        In between the agent is cleared, which removes the mark; or its history is summarised, and the summary taken
        off.
        """
        self.set_mark(self.agent(who), "here")
        if between == "clear":
            self.attempt(lambda: self.agent(who).clear(timeout=PATIENCE))
        if between == "summary":
            self.summarise(who, "short", before=True)
        self.attempt(lambda: self.agent(who).rewind(timeout=PATIENCE))

    @rule(who=AGENTS, pause=st.booleans())
    def crash_twice(self, who: int, pause: bool) -> None:
        """Crash an agent that may be restarted once within a period, twice: at once, or one period apart."""
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
        """Send several mails at the same time, and read them."""
        for body in bodies:
            self.send_mail(self.agent(sender), self.agent(recipient), body)
        self.read_mail_of(self.agent(recipient))

    @rule(who=AGENTS, ours=st.booleans())
    def write_of_earlier_owner(self, who: int, ours: bool) -> None:
        """Check ``fenced``: a former owner of an agent writes nothing, and neither does a dead agent."""
        dead = sorted(self.ledger.ended)
        record = (self.system.handle(dead[who % len(dead)]) if ours and dead else self.agent(who)).record
        fence = (
            FencingToken(record.owner or "", record.epoch - 1) if ours else FencingToken("somebody else", record.epoch)
        )

        def written(answer: object) -> None:
            raise Broken(f"fenced: {fence} writes for agent {record.uuid}, which {record.owner} owns")

        self.attempt(lambda: self.system._writer.perform(Append(LogUnit(record.uuid, ()), fence), PATIENCE), written)
