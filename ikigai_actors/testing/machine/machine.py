"""`AgentTreeMachine`: Hypothesis generates programs for a tree of agents, schedules and faults; checks invariants.

    class MyMachine(AgentTreeMachine):
        def tools(self) -> list[Tool]:
            return [*super().tools(), publish]

        @invariant()
        def nothing_is_published_twice(self) -> None: ...

    TestMyMachine = MyMachine.TestCase

The invariants, by the names with which their failures begin. At every commit and request:

    fsck                  a database is sound after every commit (fsck.py names what that is)
    requests-valid        each request to a provider is valid for the Messages API
    commit-before-effect  a request is sent, or a tool starts, only after the message that asks for it is committed
    memory                a request has all messages that count, or their summary, each fact and long result once
    summary, recall       a summary replaces all messages that its model was shown, and keeps whole steps and the open
                          prompt; ``recall`` returns messages that count
    settings              a fork at an earlier position has its parent's present settings, not those of then
    stamp, unit           see `ikigai_actors.testing.machine.stamp_oracle`
    owner, fenced, tree, barrier, turn, prompt, output, blobs, late, signals, int, intensity, otp
                          see `ikigai_actors.testing.machine.commit_invariants`

After every rule, and at rest:

    history               each history, in memory and read again, equals that of a model which copies it at each fork
    siblings              the requests of siblings are equal up to the last reply before the fork
    acknowledged          acknowledged agents, mails, documents, marks and deaths are in the database
    merge                 a head of a child is merged once, as the child is then; nothing is repeated or left out
    group                 a mail to a group reaches all agents that are members at its commit
    monitor               each monitor of an agent gets a mail about the agent's death
    prune                 only unneeded histories of dead agents are deleted, as a whole, and readers get the error
    hash                  each message has the hash of its agent's history up to the message, forever
    former                the state as of an earlier moment at rest equals the state that was seen at that moment
    span                  each ended turn has its spans, with unchanging ids, below their parent spans
    transfer              an exported and imported branch equals the original, with its merges and its mail
    int                   an INT ends the turn of the prompt before it, without a request, and no later turn
    dead                  no model is asked for an agent whose death was acknowledged by the host that runs it
    steer                 a steering message enters one history once, in order, after all results; its receipt is right
    rule                  the rules in force at the commit decide whether a call begins or is denied
    timer                 a timer fires once for each due time, and ends with its agent
    delivery              the commit of an event writes its deliveries; each is received under one id, in order, and
                          recorded by the host that has the agent
    arrival               a delivery from outside takes effect once, in the commit that records it
    question              a question takes its steps in order, and ends once: with an answer that somebody has given,
                          with its default when its time is over, or with its call
    once                  a tool that is not idempotent runs once for each call
    mail                  programs and models read each sent mail at most once, in order
    wait                  a wait ends exactly if its condition has come true
    reply                 whoever asks for a reply gets it, if the turn has ended before its agent died
    cascade               no agent lives below an agent that was killed with ``cascade``
    actors                dead agents have no actors
    supervised            every living agent has a living supervisor
    quiescence            when no event is left, no agent is in the middle of a turn, and every prompt has its answer
"""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from ikigai_actors.testing.machine.base import AGENTS, MOST_PERIODS, PERIOD
from ikigai_actors.testing.machine.former_oracle import CLOCKS_DIFFER
from ikigai_actors.testing.machine.question_rules import QuestionRules
from ikigai_actors.testing.machine.rules import AgentRules
from ikigai_actors.testing.machine.street_rules import StreetRules
from ikigai_actors.testing.machine.upkeep_rules import UpkeepRules
from ikigai_actors.testing.simulation.faults import ALL, Faults
from ikigai_actors.testing.simulation.schedule import Schedule
from ikigai_actors.testing.simulation.world import simulated
from ikigai_actors.testing.strategies import faults, schedules


class AgentTreeMachine(UpkeepRules, StreetRules, QuestionRules, AgentRules):
    """A state machine for a tree of agents. Subclass it to add rules, tools and invariants."""

    MOST_FAULTS: Faults = ALL
    """The most faults in one run."""

    @initialize(schedule=schedules(), misfortunes=st.runner().flatmap(lambda machine: faults(machine.MOST_FAULTS)))
    def begin(self, schedule: Schedule, misfortunes: Faults) -> None:
        """Open a system in a new world, with drawn schedule and faults."""
        self.enter(simulated(schedule, faults=misfortunes))

    # Rules

    @rule(who=AGENTS, others=st.none() | st.lists(AGENTS, min_size=1, max_size=3), seconds=st.sampled_from((0, 5, 600)))
    def wait(self, who: int, others: list[int] | None, seconds: int) -> None:
        """Let an agent wait for others, or for mail."""
        self.waits(self.agent(who), None if others is None else [self.agent(other) for other in others], seconds)

    @rule(path=st.sampled_from(("plan.md", "log/day.md")), author=AGENTS, careful=st.booleans())
    def write_document(self, path: str, author: int, careful: bool) -> None:
        """Write a document as an agent."""
        expect = self.ledger.documents.get(path, 0) if careful else None

        def written(version: int) -> None:
            self.ledger.documents[path] = version

        self.attempt(
            lambda: self.system.documents.write(path, "text", author=self.agent(author), expect=expect), written
        )

    @rule()
    def crash(self) -> None:
        """Kill the process, and start it again."""
        self.ledger.open.clear()
        self.world.crash()
        self.world.recover()

    @rule(resume=st.booleans())
    def take_over(self, resume: bool) -> None:
        """Let a second host take over, while the first one goes on without knowing."""
        self.ledger.open.clear()
        self.attempt(lambda: self.world.take_over(resume=resume))

    @rule()
    def restart(self) -> None:
        """Close the system, and open it again."""
        self.ledger.open.clear()
        self.attempt(lambda: self.world.reopen(resume=True))

    @rule()
    def stands_still(self) -> None:
        """Let a moment pass at which nothing is under way, so that its values can be checked later."""
        self.attempt(self.world.settle)
        if self.world.hosts[0].answers and not self.system.statistics().journal.queued:
            self.former.check()
        self.attempt(lambda: self.world.sleep(0.002))

    @precondition(lambda self: self.ledger.open or self.ledger.timers)
    @rule()
    def comes_to_rest(self) -> None:
        """Let everything happen that can happen, and check that no caller and no agent waits in vain."""

        def rest() -> None:
            self.world.settle()
            for _ in range(MOST_PERIODS):  # one turn may wait for minutes, and another one after it
                self.world.sleep(PERIOD)
                self.world.settle()
                if not self.at_work():
                    return
            if (late := -self.world.clock.wrong) > 0:  # a deadline is a time of the wall clock, which was set back
                self.world.sleep(late)
                self.world.settle()

        process = None
        while process is not self.world.process:  # after a crash time passes again
            process = self.world.process
            self.attempt(rest)
        self.ledger.check_rest(self.world, self.at_work())
        self.timers.check_rest()
        self.deliveries.check_rest()
        self.questions.check_rest()
        self.hashes.check_rest()
        self.spans.check_rest()
        self.former.check(CLOCKS_DIFFER)
        self.attempt(lambda: self.world.sleep(2 * CLOCKS_DIFFER / 1000))
        self.words.check_rest({self.world.process})
        self.check_upkeep()

    # Invariants

    @invariant()
    def history_is_what_copying_gives(self) -> None:
        """Check the invariant ``history``, in memory and read from the database."""
        self.ledger.check_histories(self.world)
