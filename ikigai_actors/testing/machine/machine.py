"""`AgentTreeMachine`: Hypothesis makes up a program for a tree of agents, a schedule and faults, and looks.

    class MyMachine(AgentTreeMachine):
        def tools(self) -> list[Tool]:
            return [*super().tools(), publish]

        @invariant()
        def nothing_is_published_twice(self) -> None: ...

    TestMyMachine = MyMachine.TestCase

The invariants, by the names with which their failures begin. At every commit and request:

    fsck                  a database is sound after every commit (fsck.py names what that is)
    requests-valid        what leaves for a provider is a request that the Messages API takes
    commit-before-effect  a request or a tool leaves when what asks for it is committed
    owner, fenced, tree, barrier, turn, prompt, late, signals, intensity, otp
                          see `ikigai_actors.testing.machine.commit_invariants`

After every rule, and at rest:

    history               every agent's history is what copying at each fork gives, in memory and read anew
    siblings              what siblings were sent is equal up to the last reply before the fork
    acknowledged          what was acknowledged is there: agents, mails, documents, marks, deaths
    once                  a tool that is not idempotent runs once for each call
    mail                  every mail that was sent is read once at most, in order, by programs and by models
    wait                  what ends a wait has happened, and what has happened ends it
    cascade               nobody lives below whom a cascade has hit
    supervised            every living agent has a living supervisor
    quiescence            with nothing left to happen nobody is in the midst of a turn, and every prompt has its answer
"""

import sys

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from ikigai_actors.providers.scripted import ScriptedReply
from ikigai_actors.records.registry import descendants
from ikigai_actors.testing.machine.base import PATIENCE
from ikigai_actors.testing.machine.commit_invariants import CommitCheck
from ikigai_actors.testing.machine.fixtures import TOOL_CALLS
from ikigai_actors.testing.machine.model import at_work
from ikigai_actors.testing.machine.targeted_rules import AGENTS, PERIOD, AimedRules
from ikigai_actors.testing.simulation.faults import ALL, Faults
from ikigai_actors.testing.simulation.schedule import Schedule
from ikigai_actors.testing.simulation.world import simulated
from ikigai_actors.testing.strategies import faults, prompts, replies, schedules, signals
from supervisors.signals import Signal

MOST_PERIODS = 20
"""How often as long as a restart counts a run may take to come to rest."""

LABELS = st.sampled_from(("here", "there"))
_NAMES = st.sampled_from(("", "ann", "bob"))


class AgentTreeMachine(AimedRules):
    """Drives a tree of agents; subclass it to add rules, tools and invariants."""

    MOST_FAULTS: Faults = ALL
    """How much may go wrong in one run."""

    @initialize(schedule=schedules(), misfortunes=st.runner().flatmap(lambda machine: faults(machine.MOST_FAULTS)))
    def begin(self, schedule: Schedule, misfortunes: Faults) -> None:
        """Open a system in a new world."""
        self._context = simulated(schedule, faults=misfortunes)
        self.world = self._context.__enter__()
        self.commits = CommitCheck(self.world)
        self.world.watchers += (self.ledger.oracle.committed, self.commits.committed)
        self.world.open(self.provider(), self.providers(), self.tools(), **self.options())
        self.ledger.known[self.system.root.uuid] = None

    def teardown(self) -> None:
        """Let it come to rest, look at everything once more, and close it. A run that has failed is left as it is."""
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

    # Rules

    @rule(who=AGENTS, prompt=st.none() | prompts(), reply=replies(TOOL_CALLS))
    def fork(self, who: int, prompt: str | None, reply: ScriptedReply) -> None:
        """An agent makes a child."""
        if len(self.living()) >= self.LIMIT:
            return
        parent = self.agent(who)
        self.script(parent, reply)  # the child begins with its own; this one is for the parent's next turn
        self.attempt(
            lambda: parent.fork(prompt, timeout=PATIENCE), lambda child: self.ledger.known.setdefault(child.uuid)
        )

    @rule(who=AGENTS, text=prompts(), answers=st.lists(replies(TOOL_CALLS), max_size=2))
    def prompt(self, who: int, text: str, answers: list[ScriptedReply]) -> None:
        """An agent is prompted, and nobody waits for it."""
        agent = self.agent(who)
        self.script(agent, *answers)
        self.attempt(lambda: agent.prompt(text), self.ledger.open.append)

    @rule(sender=AGENTS, recipient=AGENTS, body=prompts())
    def send(self, sender: int, recipient: int, body: str) -> None:
        """An agent sends a mail."""
        self.send_mail(self.agent(sender), self.agent(recipient), body)

    @rule(who=AGENTS)
    def read_mail(self, who: int) -> None:
        """An agent reads its mail."""
        self.read_mail_of(self.agent(who))

    @rule(who=AGENTS, others=st.none() | st.lists(AGENTS, min_size=1, max_size=3), seconds=st.sampled_from((0, 5, 600)))
    def wait(self, who: int, others: list[int] | None, seconds: int) -> None:
        """An agent waits for others, or for mail."""
        self.waits(self.agent(who), None if others is None else [self.agent(other) for other in others], seconds)

    @rule(who=AGENTS, label=LABELS)
    def mark(self, who: int, label: str) -> None:
        """An agent sets a mark."""
        agent = self.agent(who)

        def marked(position: int) -> None:
            self.ledger.marks[agent.uuid, position] = label

        self.attempt(lambda: agent.mark(label, timeout=PATIENCE), marked)

    @rule(who=AGENTS, label=st.none() | LABELS)
    def rewind(self, who: int, label: str | None) -> None:
        """An agent goes back to a mark."""
        self.attempt(lambda: self.agent(who).rewind(label, timeout=PATIENCE))

    @rule(who=AGENTS)
    def undo(self, who: int) -> None:
        """An agent takes back its latest prompt."""
        self.attempt(lambda: self.agent(who).undo(timeout=PATIENCE))

    @rule(who=AGENTS)
    def resume(self, who: int) -> None:
        """An agent goes on with a turn that an error ended, if there is one."""
        self.attempt(lambda: self.agent(who).resume(timeout=PATIENCE))

    @rule(who=AGENTS)
    def clear(self, who: int) -> None:
        """An agent begins anew."""
        self.attempt(lambda: self.agent(who).clear(timeout=PATIENCE))

    @rule(who=AGENTS, signal=signals(), spread=st.booleans())
    def signal(self, who: int, signal: Signal, spread: bool) -> None:
        """Somebody sends a signal."""
        self.send_signal(self.agent(who), signal, spread=spread)

    @rule(who=AGENTS, times=st.integers(1, 4))
    def crash_agent(self, who: int, times: int) -> None:
        """An agent's own code fails, perhaps again after each restart."""
        agent = self.agent(who)
        self.script(agent, *[LookupError("a defect of its own") for _ in range(times)])
        self.attempt(lambda: agent.prompt("go"), self.ledger.open.append)

    @rule(who=AGENTS)
    def kill(self, who: int) -> None:
        """An agent is killed; what becomes of those below it is as it was set."""
        self._kill(who, spread=False)

    @rule(who=AGENTS)
    def cascade(self, who: int) -> None:
        """An agent is killed, with all below it."""
        self._kill(who, spread=True)

    def _kill(self, who: int, *, spread: bool) -> None:
        agent = self.agent(who)
        read = self.system.store.read
        below = [record.uuid for record in read(lambda tx: descendants(tx, agent.uuid))] if spread else []
        self.attempt(
            lambda: agent.kill(cascade=spread, timeout=PATIENCE),
            lambda victims: self.ledger.died(self.system, victims, below),
        )

    @rule(who=AGENTS, name=_NAMES)
    def rename(self, who: int, name: str) -> None:
        """An agent gets another name, unless somebody has it; or none."""
        self.attempt(lambda: self.agent(who).rename(name, timeout=PATIENCE))

    @rule(who=AGENTS, child=AGENTS)
    def adopt(self, who: int, child: int) -> None:
        """An agent adopts another one."""
        self.attempt(lambda: self.agent(who).adopt(self.agent(child), timeout=PATIENCE))

    @rule(path=st.sampled_from(("plan.md", "log/day.md")), author=AGENTS, careful=st.booleans())
    def write_document(self, path: str, author: int, careful: bool) -> None:
        """An agent writes a document."""
        expect = self.ledger.documents.get(path, 0) if careful else None

        def written(version: int) -> None:
            self.ledger.documents[path] = version

        self.attempt(
            lambda: self.system.documents.write(path, "text", author=self.agent(author), expect=expect), written
        )

    @rule(schedule=schedules(8))
    def follow(self, schedule: Schedule) -> None:
        """What comes next is chosen so."""
        self.world.follow(schedule)

    @rule(steps=st.integers(1, 40))
    def goes_on(self, steps: int) -> None:
        """Time for whatever is going on."""

        def run() -> None:
            for _ in range(steps):
                if self.world.agenda.quiet:
                    return
                self.world.agenda.step()

        self.attempt(run)

    @rule()
    def crash(self) -> None:
        """The process is killed, and begins anew."""
        self.ledger.open.clear()
        self.world.crash()
        self.world.recover()

    @rule(resume=st.booleans())
    def take_over(self, resume: bool) -> None:
        """A second host takes over, and the first one goes on without knowing."""
        self.ledger.open.clear()
        self.attempt(lambda: self.world.take_over(resume=resume))

    @rule()
    def restart(self) -> None:
        """The system is closed, and opened anew."""
        self.ledger.open.clear()
        self.attempt(lambda: self.world.reopen(resume=True))

    @precondition(lambda self: self.ledger.open)
    @rule()
    def comes_to_rest(self) -> None:
        """Everything happens that can; then nobody may be left waiting."""

        def rest() -> None:
            self.world.settle()
            for _ in range(MOST_PERIODS):  # one turn may wait for minutes, and another one behind it
                self.world.sleep(PERIOD)
                self.world.settle()
                if not at_work(self.system):
                    return

        process = None
        while process is not self.world.process:  # after a crash time passes anew
            process = self.world.process
            self.attempt(rest)
        self.ledger.check_rest(self.world)

    # Invariants

    @invariant()
    def history_is_what_copying_gives(self) -> None:
        """History: in memory, and read anew."""
        self.ledger.check_histories(self.world)

    @invariant()
    def siblings_share_what_they_were_sent(self) -> None:
        """What was sent to siblings is equal up to the fork."""
        self.ledger.check_requests(self.world)

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        """Agents live or are dead as was said; mails and documents are there."""
        self.ledger.check_acknowledged(self.system)
        self.look_at_work()

    def look_at_work(self) -> None:
        """No call was carried out twice."""
        self.work.check()
