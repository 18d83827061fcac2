"""The rules of both machines for agents, on whatever host they run."""

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from ikigai_actors.agent.turn.ways import PICK, RESULT, SUMMARY, WAYS
from ikigai_actors.errors import AgentDead
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.providers.scripted import ScriptedReply, Stream
from ikigai_actors.records.agents.registry import PutToSleep
from ikigai_actors.system.births import Child
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE, Stage
from ikigai_actors.testing.machine.fixtures import GIVEN, NOTES, SLOW, SUMMARIES, TOOL_CALLS, WORK
from ikigai_actors.testing.machine.model import check_no_reply
from ikigai_actors.testing.simulation.faults import CrashPoint
from ikigai_actors.testing.simulation.schedule import Schedule
from ikigai_actors.testing.strategies import prompts, replies, schedules, signals
from supervisors.signals import Signal

VALUES: st.SearchStrategy[object] = st.sampled_from((7, "7", {}, None))
"""The values that a model gives when it is asked for a whole number; None is an answer in words."""
PICTURES = st.sampled_from((b"GIF89a\1\0\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\0;", b"%PDF-1.7"))

GROUPS = st.sampled_from(("tea", "milk"))

DECISIONS, SCOPES = st.sampled_from(("allow", "ask", "deny")), st.sampled_from(("below", "self"))
MOSTLY_BELOW = st.sampled_from(("below", "below", "self"))
CALLED = st.sampled_from((WORK, "send"))
ABOVE_AND_OWN = st.sampled_from((("ask", "allow"), ("deny", "allow"), ("allow", "ask")))
RULED = st.sampled_from((WORK, "send", "w*"))
"""The tools that rules are about; ``w*`` is a pattern."""

LABELS = st.sampled_from(("here", "there"))

NAMES = st.sampled_from(("", "ann", "bob"))


class AgentRules(Stage):
    """The rules of both machines that act on agents."""

    @rule(who=AGENTS, prompt=st.none() | prompts(), reply=replies(TOOL_CALLS))
    def fork(self, who: int, prompt: str | None, reply: ScriptedReply) -> None:
        """Fork a child of an agent."""
        if len(self.living()) >= self.LIMIT:
            return
        parent = self.agent(who)
        self.script(parent, reply)  # the child begins with its own; this one is for the parent's next turn
        self.fork_of(parent, prompt)

    @rule(who=AGENTS, prompt=st.none() | prompts(), back=st.integers(0, 12))
    def fork_at(self, who: int, prompt: str | None, back: int) -> None:
        """Fork a child at an earlier position, which may be before the agent's own fork point, or within a step."""
        if len(self.living()) >= self.LIMIT:
            return
        parent = self.agent(who)
        history = self.ledger.oracle.histories.get(parent.uuid)
        self.fork_of(parent, prompt, max(0, history.head - back) if history is not None else 0)

    @rule(who=AGENTS, said=st.lists(st.none() | prompts(), min_size=2, max_size=3))
    def fork_many(self, who: int, said: list[str | None]) -> None:
        """Fork several children of an agent in one unit."""
        if len(self.living()) + len(said) <= self.LIMIT:
            self.forks_of(self.agent(who), said)

    @rule(who=AGENTS, of=AGENTS, prompt=st.none() | prompts(), back=st.integers(0, 6), go=st.booleans())
    def fork_another(self, who: int, of: int, prompt: str | None, back: int, go: bool) -> None:
        """Fork a child of another agent's history, which may be dead; perhaps the child begins without a prompt."""
        if len(self.living()) < self.LIMIT:
            by, other = self.agents(who, of)
            history = self.ledger.oracle.histories.get(other.uuid)
            at = max(0, history.head - back) if history is not None else 0
            text = None if prompt is None or go else self.worded("prompt", prompt)
            child = Child(other, at, text, go)
            self.attempt(
                lambda: by.fork_many([child], note={"why": "a rule"}, timeout=PATIENCE),
                lambda born: self.ledger.known.setdefault(born[0].uuid),
            )

    @rule(who=AGENTS)
    def sleep(self, who: int) -> None:
        """Let an unused agent without open work give up its actor; later the agent's mark is cleared."""
        agent = self.agent(who)
        system = agent.system
        assert isinstance(system, ActorSystem)
        if (actor := system._processes.get(agent.uuid)) is not None:
            actor.sleep()
        self.attempt(lambda: system._writer.perform(PutToSleep(system._runtime.host.id, (agent.uuid,))))

    @rule(who=AGENTS)
    def note(self, who: int) -> None:
        """Write a note into the log of an agent."""
        self.attempt(lambda: self.agent(who).note({"rating": 4}, timeout=PATIENCE))

    @rule(who=AGENTS, text=prompts(), answers=st.lists(replies(TOOL_CALLS), max_size=2))
    def prompt(self, who: int, text: str, answers: list[ScriptedReply]) -> None:
        """Prompt an agent without waiting for the answer."""
        agent = self.agent(who)
        self.script(agent, *answers)
        self.prompted(agent, text)

    @rule(who=AGENTS, text=prompts(), values=st.lists(VALUES, max_size=4), attach=st.lists(PICTURES, max_size=2))
    def prompt_for_a_value(self, who: int, text: str, values: list[object], attach: list[bytes]) -> None:
        """Ask an agent for a whole number, perhaps with pictures.

        The model of the agent gives values, or the words ``ok``.
        """
        agent = self.agent(who)
        calls = [ToolCall("give_result", {"result": value}) for value in values]
        self.script(agent, *[Reply("", (call,)) if call.input["result"] is not None else "ok" for call in calls])
        self.prompted(agent, text, output=int, attach=attach)

    @rule(who=AGENTS, answer=st.sampled_from([*sorted(SUMMARIES), GIVEN]), before=st.booleans())
    def compact(self, who: int, answer: str, before: bool) -> None:
        """Have a model or a person summarise an agent's history; with ``before``, after further prompts."""
        self.summarise(who, answer, before=before)

    @rule(who=AGENTS)
    def uncompact(self, who: int) -> None:
        """Take off an agent's latest summary."""
        self.attempt(lambda: self.agent(who).uncompact(timeout=PATIENCE))

    @rule(who=AGENTS, child=AGENTS, how=st.sampled_from(WAYS), goes_on=st.booleans())
    def merge(self, who: int, child: int, how: str, goes_on: bool) -> None:
        """Merge an agent, which need not be a descendant, into another; perhaps it goes on meanwhile."""
        by, other = self.agents(who, child)
        if how == SUMMARY:
            self.attempt(lambda: self.agent(child).configure(compact_model=f"{NOTES}:late", timeout=PATIENCE))
            by, other = self.agents(who, child)
        if goes_on:
            self.prompted(other, "and?")
        new = self.merges.news(by.uuid, other.uuid)
        self.merge_of(by, other, how, (max(new, default=1),) if how == PICK else ())

    @rule(who=AGENTS, answers=st.booleans())
    def merge_and_go_on(self, who: int, answers: bool) -> None:
        """Merge a child after an answer, and again while it goes on, so that its head moves during the merge."""
        before = len(self.ledger.known)
        if len(self.living()) < self.LIMIT:
            self.fork_of(self.agent(who), "go")
        if len(self.ledger.known) == before:
            return
        for _ in range(2):
            self.attempt(self.world.settle)
            by, child = self.agents(who, before)
            self.merge_of(by, child, RESULT)
            self.script(self.agent(before), "yes", "no")
            for _ in range(2):
                self.prompted(self.agent(before), "and?")
        self.attempt(self.world.settle)
        notes = f"{NOTES}:late"
        self.attempt(lambda: self.agent(before).configure(compact_model=notes, timeout=PATIENCE))
        by, child = self.agents(who, before)
        self.attempt(lambda: by.aio.merge(child, SUMMARY))
        if answers:
            self.prompted(self.agent(before), "and?")
        else:
            self.set_mark(self.agent(before), "here")
        self.attempt(self.world.settle)

    @rule(who=AGENTS)
    def steer(self, who: int) -> None:
        """Send a steering message to an agent."""
        self.steer_agent(self.agent(who), now=False)

    @rule(who=AGENTS)
    def steer_now(self, who: int) -> None:
        """Send a steering message that interrupts the agent's present step."""
        self.steer_agent(self.agent(who), now=True)

    @rule(
        who=AGENTS,
        how=st.sampled_from(("slow", "wait", WORK)),
        now=st.booleans(),
        words=st.integers(1, 3),
        then=st.sampled_from(("", "withdraw", "stop")),
    )
    def steer_in_turn(self, who: int, how: str, now: bool, words: int, then: str) -> None:
        """Send steering messages to an agent in its turn; perhaps the last is withdrawn, or the agent is stopped."""
        calls = {"wait": ToolCall("wait", {"timeout": 5}), WORK: ToolCall(WORK)}
        self.script(self.agent(who), SLOW if how == "slow" else Reply("", (calls[how],)), "ok", SLOW)
        self.prompted(self.agent(who))
        self.goes_on_for(12)
        for _ in range(words):
            self.steer_agent(self.agent(who), now=now)
        if then == "withdraw":
            self.withdraw(1)
        elif then == "stop":
            self.send_signal(self.agent(who), Signal.STOP)
        if then:
            self.attempt(lambda: self.world.sleep(SLOW.delay * 4))

    @rule(back=st.integers(1, 3))
    def withdraw(self, back: int) -> None:
        """Withdraw a steering message, if it is unread."""
        if len(self.words.receipts) < back:
            return
        asked, agent, receipt = self.words.receipts[-back]
        if not self.runs(asked):
            return
        self.attempt(receipt.withdraw, lambda gone: self.words.withdrew(agent, receipt) if gone else None)

    @rule(sender=AGENTS, recipient=AGENTS)
    def send_steer(self, sender: int, recipient: int) -> None:
        """Let an agent's model send a steering message to another agent.

        The message is refused unless the other agent is below the sender.
        """
        by, to = self.agents(sender, recipient)
        call = ToolCall("send", {"to": to.uuid, "body": f"word {self.fact()}", "steer": True})
        self.script(by, Reply("", (call,)))
        self.prompted(by)

    @rule(who=AGENTS)
    def steer_sibling(self, who: int) -> None:
        """Let an agent's model send a steering message to a sibling."""
        first = len(self.ledger.known)
        if len(self.living()) + 2 <= self.LIMIT:
            self.forks_of(self.agent(who), [None, None])
        if len(self.ledger.known) == first + 2:
            self.send_steer(first, first + 1)
            self.attempt(self.world.settle)

    @rule(sender=AGENTS, recipient=AGENTS, body=prompts())
    def send(self, sender: int, recipient: int, body: str) -> None:
        """Send a mail from an agent to another."""
        by, to = self.agents(sender, recipient)
        self.send_mail(by, to, body)

    @rule(who=AGENTS)
    def read_mail(self, who: int) -> None:
        """Read an agent's mail."""
        self.read_mail_of(self.agent(who))

    @rule(who=AGENTS, seconds=st.sampled_from((0, 1, 20, 90)), prompt=st.booleans())
    def remind(self, who: int, seconds: int, prompt: bool) -> None:
        """Set a timer of an agent that fires once."""
        self.set_timer(self.agent(who), prompt, after=seconds)

    @rule(who=AGENTS, prompt=st.booleans(), every=st.sampled_from(("*/5 * * * *", "7m")))
    def remind_again_and_again(self, who: int, prompt: bool, every: str = "*/5 * * * *") -> None:
        """Set a timer of an agent that fires every few minutes."""
        self.set_timer(self.agent(who), prompt, every=every)

    @rule(who=AGENTS, number=st.integers(1, 2))
    def cancel_timer(self, who: int, number: int) -> None:
        """Cancel the timer of an agent with this number, if it exists."""
        self.attempt(lambda: self.agent(who).cancel_timer(number, timeout=PATIENCE))

    @rule(who=AGENTS, group=GROUPS, joins=st.booleans())
    def join_or_leave(self, who: int, group: str, joins: bool) -> None:
        """Let an agent join a group, or leave it."""
        agent = self.agent(who)
        act = agent.join if joins else agent.leave
        self.attempt(lambda: act(group, timeout=PATIENCE))

    @rule(who=AGENTS, group=GROUPS)
    def send_to_group_of(self, who: int, group: str) -> None:
        """Send a mail from an agent to a group."""
        self.send_to_group(self.agent(who), group)

    @rule(who=AGENTS, other=AGENTS)
    def monitor(self, who: int, other: int) -> None:
        """Let an agent monitor another one."""
        watcher, watched = self.agents(who, other)
        self.attempt(lambda: watcher.monitor(watched, timeout=PATIENCE))

    @rule(who=AGENTS, decision=DECISIONS, tool=RULED, scope=SCOPES)
    def set_rule(self, who: int, decision: str, tool: str, scope: str) -> None:
        """Set a rule of an agent about tool calls."""
        self.attempt(lambda: self.agent(who).set_rule(decision, tool, scope=scope, timeout=PATIENCE))

    @rule(who=AGENTS, number=st.integers(1, 3))
    def remove_rule(self, who: int, number: int) -> None:
        """Remove the rule of an agent with this number, if it exists."""
        self.attempt(lambda: self.agent(who).remove_rule(number, timeout=PATIENCE))

    @rule(who=AGENTS, decisions=ABOVE_AND_OWN, tool=CALLED, late=st.booleans(), scope=MOSTLY_BELOW)
    def call_under_rules(self, who: int, decisions: tuple[str, str], tool: str, late: bool, scope: str) -> None:
        """Let a model call a tool under rules of its agent, and of the sibling that has adopted the agent.

        The call may come before the rules are set.
        """
        by, (above, own) = len(self.ledger.known), decisions
        if len(self.living()) + 2 <= self.LIMIT:
            self.forks_of(self.agent(who), (None, None))
        if by == len(self.ledger.known):
            return
        child = by + 1

        def calls() -> None:
            call = ToolCall(tool, {"body": "news"} if tool == "send" else {})
            self.script(self.agent(child), Stream(("at ",), then=Reply("", (call,)), delay=SLOW.delay))
            self.prompted(self.agent(child))

        if late:
            calls()
            self.goes_on_for(12)
        self.adopt(by, child)
        self.attempt(lambda: self.agent(child).set_rule(own, tool, timeout=PATIENCE))
        self.attempt(lambda: self.agent(by).set_rule(above, tool, scope=scope, timeout=PATIENCE))
        if not late:
            calls()
        self.attempt(lambda: self.world.sleep(3 * SLOW.delay))

    @rule(who=AGENTS, label=LABELS)
    def mark(self, who: int, label: str) -> None:
        """Set a mark in an agent's history."""
        self.set_mark(self.agent(who), label)

    @rule(who=AGENTS, signal=signals(), spread=st.booleans())
    def signal(self, who: int, signal: Signal, spread: bool) -> None:
        """Send a signal to an agent."""
        self.send_signal(self.agent(who), signal, spread=spread)

    @rule(who=AGENTS, keys=st.lists(st.sampled_from(("k1", "k2")), min_size=1, max_size=3))
    def prompt_under_keys(self, who: int, keys: list[str]) -> None:
        """Prompt an agent with keys, perhaps the same as before, from this process or after a crash."""
        for key in keys:
            self.prompt_once(self.agent(who), key)

    @rule(who=AGENTS, key=st.sampled_from(("c1", "c2")))
    def fork_under_a_key(self, who: int, key: str) -> None:
        """Fork a child with a key, perhaps the same key as before."""
        if len(self.living()) < self.LIMIT:
            self.fork_once(self.agent(who), key)

    @rule(who=AGENTS)
    def prompt_and_interrupt(self, who: int) -> None:
        """Prompt an idle agent, interrupt it at once, and prompt it again."""
        self.attempt(self.world.settle)
        self.attempt(lambda: self.interrupt_behind(self.agent(who)))

    @rule(who=AGENTS, spread=st.booleans())
    def kill(self, who: int, spread: bool) -> None:
        """Kill an agent, perhaps with all agents below it.

        Otherwise the agent's orphan policy applies to its children.
        """
        self.kill_agent(self.agent(who), spread=spread)

    @rule(who=AGENTS, child=AGENTS)
    def adopt(self, who: int, child: int) -> None:
        """Let an agent adopt another one."""
        by, adopted = self.agents(who, child)
        self.attempt(lambda: by.adopt(adopted, timeout=PATIENCE))

    @rule(who=AGENTS, label=st.none() | LABELS)
    def rewind(self, who: int, label: str | None) -> None:
        """Rewind an agent to a mark."""
        self.attempt(lambda: self.agent(who).rewind(label, timeout=PATIENCE))

    @rule(who=AGENTS)
    def undo(self, who: int) -> None:
        """Take back an agent's latest prompt."""
        self.attempt(lambda: self.agent(who).undo(timeout=PATIENCE))

    @rule(who=AGENTS)
    def resume(self, who: int) -> None:
        """Resume an agent's turn that an error ended, if there is one."""
        self.attempt(lambda: self.agent(who).resume(timeout=PATIENCE))

    @rule(who=AGENTS)
    def clear(self, who: int) -> None:
        """Clear an agent's history."""
        self.attempt(lambda: self.agent(who).clear(timeout=PATIENCE))

    @rule(who=AGENTS, times=st.integers(1, 4))
    def crash_agent(self, who: int, times: int) -> None:
        """Let an agent's own code fail, perhaps again after each restart."""
        agent = self.agent(who)
        self.script(agent, *[LookupError("a defect of its own") for _ in range(times)])
        self.prompted(agent)

    @rule(who=AGENTS, name=NAMES)
    def rename(self, who: int, name: str) -> None:
        """Rename an agent, or take its name away. The name may be in use."""
        self.attempt(lambda: self.agent(who).rename(name, timeout=PATIENCE))

    @rule(who=AGENTS)
    def configure(self, who: int) -> None:
        """Change a setting of an agent."""
        self.attempt(lambda: self.agent(who).configure(max_tokens=100, timeout=PATIENCE))

    @rule(who=AGENTS)
    def reply(self, who: int) -> None:
        """Ask for the outcome of an agent's latest turn."""
        agent = self.agent(who)

        def ask() -> None:
            try:
                agent.reply(timeout=PATIENCE)
            except AgentDead as error:
                check_no_reply(agent, error)
                raise

        self.attempt(ask)

    @rule(who=AGENTS)
    def exit(self, who: int) -> None:
        """Let an agent exit when its turn is over."""
        self.attempt(lambda: self.agent(who).exit("done", timeout=PATIENCE))

    @rule(who=AGENTS, strategy=st.sampled_from(("one_for_one", "one_for_all", "rest_for_one")))
    def supervise(self, who: int, strategy: str) -> None:
        """Change an agent's supervision strategy."""
        agent = self.agent(who)
        self.attempt(lambda: agent.supervise(strategy=strategy, timeout=PATIENCE))

    @rule(commit=st.integers(1, 6), committed=st.booleans())
    def crash_soon(self, commit: int, committed: bool) -> None:
        """End the process that makes one of the next commits, at that commit."""
        self.world.crash_at(CrashPoint(commit, committed))

    @rule(schedule=schedules(8))
    def follow(self, schedule: Schedule) -> None:
        """Change the schedule that chooses what happens next."""
        self.world.follow(schedule)

    @rule(steps=st.integers(1, 40))
    def goes_on(self, steps: int) -> None:
        """Let at most ``steps`` steps happen."""
        self.goes_on_for(steps)

    @invariant()
    def siblings_share_what_they_were_sent(self) -> None:
        """Check that requests of siblings are equal, byte for byte, up to the fork."""
        self.ledger.check_requests(self.world)

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        """Check that acknowledged agents, deaths, mails, marks, documents and prompts are stored, each once."""
        self.ledger.check_acknowledged(self.system)
        self.timers.check_acknowledged(self.ledger.timers)
        self.words.check()
        self.look_at_work()

    def look_at_work(self) -> None:
        """Check that the tool was run once at most for each call."""
        self.work.check()
