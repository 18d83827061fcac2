"""`FleetMachine`: Hypothesis makes up a program for agents that several hosts share, and what becomes of the hosts.

Any host is asked for any agent; hosts are killed, stopped, cut off, drained and started again, and agents are moved.
The invariants, by the names with which their failures begin: those of each commit and request that `AgentTreeMachine`
has, and

    owner, handed, epoch, believed, noticed
                          who may write, and who ends whom: see `ikigai_actors.testing.simulation.ownership`
    answered              a prompt opens one turn, and none without an acknowledgement has a reply
    request               what an agent is asked to do on another host it does once, and answers
    acknowledged          what was acknowledged is there: agents, mails, marks, deaths
    history               every agent's history in the database is what copying at each fork gives
    once, mail, cascade, supervised, quiescence
                          as `AgentTreeMachine` has them
    together              siblings that are restarted together live in the shard of their supervisor
    placed                at rest every living agent has one actor, at the host that has its shard
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.errors import IkigaiError, StoreError, SystemClosed
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.providers.scripted import ScriptedReply
from ikigai_actors.records import registry
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.system.ref import AgentRef
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.testing.machine.base import PATIENCE, Stage
from ikigai_actors.testing.machine.commit_invariants import CommitCheck
from ikigai_actors.testing.machine.fixtures import SLOW, TOOL_CALLS, WORK
from ikigai_actors.testing.machine.fleet_ledger import FleetLedger
from ikigai_actors.testing.machine.machine import MOST_PERIODS
from ikigai_actors.testing.machine.targeted_rules import AGENTS, PERIOD
from ikigai_actors.testing.simulation.faults import OF_HOSTS, CrashPoint, Faults
from ikigai_actors.testing.simulation.hosts import SimulatedHost
from ikigai_actors.testing.simulation.ownership import LEASES
from ikigai_actors.testing.simulation.process import LEAP, Broken, ProcessCrashed
from ikigai_actors.testing.simulation.schedule import Schedule
from ikigai_actors.testing.simulation.scheduler import Endless, Stuck
from ikigai_actors.testing.simulation.store import Link
from ikigai_actors.testing.simulation.world import simulated
from ikigai_actors.testing.strategies import faults, replies, schedules, signals
from supervisors.signals import Signal

HOSTS = st.integers(0, 2)
"""The number of a host; after the last one it begins again."""

REQUESTS: dict[str, Callable[[AgentRef], object]] = {
    "undo": lambda agent: agent.undo(timeout=PATIENCE),
    "clear": lambda agent: agent.clear(timeout=PATIENCE),
    "rewind": lambda agent: agent.rewind(timeout=PATIENCE),
    "resume": lambda agent: agent.resume(timeout=PATIENCE),
    "configure": lambda agent: agent.configure(max_tokens=100, timeout=PATIENCE),
    "reply": lambda agent: agent.reply(timeout=PATIENCE),
    "exit": lambda agent: agent.exit("done", timeout=PATIENCE),
}
"""What agents are asked to do themselves, beside marks and forks."""


class FleetMachine(Stage):
    """Drives agents that several hosts share; subclass it to add rules, tools and invariants."""

    MOST_FAULTS: Faults = OF_HOSTS
    """How much may go wrong in one run."""

    LIMIT = 6

    @initialize(
        hosts=st.integers(2, 3),
        schedule=schedules(),
        misfortunes=st.runner().flatmap(lambda machine: faults(machine.MOST_FAULTS)),
    )
    def begin(self, hosts: int, schedule: Schedule, misfortunes: Faults) -> None:
        """Open a system in every host of a new world, and let each take its part."""
        self._context = simulated(schedule, faults=misfortunes, hosts=hosts, steps=400_000)
        self.world = self._context.__enter__()
        self.commits = CommitCheck(self.world)
        self.facts = FleetLedger(self.world)
        self.world.watchers += (self.ledger.oracle.committed, self.commits.committed, self.facts.committed)
        self.world.open(self.provider(), self.providers(), self.tools(), **self.options())
        self.ledger.known[self.system.root.uuid] = None
        self._pass(LEASES / 4)

    def teardown(self) -> None:
        """Let it come to rest, look at everything once more, and close it. A run that has failed is left as it is."""
        if not hasattr(self, "world"):
            return
        ended = sys.exc_info()[1]
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
        """The system of a host that can be asked."""
        return self.host(0).system

    def host(self, number: int) -> SimulatedHost:
        """One of the hosts that can be asked; if there is none, all begin anew."""
        if not (there := [host for host in self.world.hosts if host.answers]):
            self.revive()
            there = [host for host in self.world.hosts if host.answers]
        return there[number % len(there)]

    def handle(self, host: int, who: int) -> AgentRef:
        """The agent with a number, of one of the hosts."""
        known = list(self.ledger.known)
        return self.host(host).system.handle(known[who % len(known)])

    def living(self) -> list[AgentRecord]:
        return [record for record in self.records() if record.living]

    def records(self) -> list[AgentRecord]:
        """The whole registry, whoever can be asked."""
        self.host(0)
        return self.world.process.looked_at.read(registry.every)

    def attempt(self, act: Callable[[], Any], then: Callable[[Any], None] = lambda answer: None) -> None:
        """Do something that may be refused, or cut off by the end of a host."""
        try:
            answer = act()
        except ProcessCrashed:
            self.world.note("refused", "the host has ended")
        except (Stuck, Endless):
            raise
        except (StoreError, SystemClosed) as trouble:
            if not self.facts.excuses():
                raise
            self.world.note("refused", f"{type(trouble).__name__}: {trouble}")
        except TimedOut as late:
            if self.facts.takers() and not any(record.status == "stopped" for record in self.living()):
                raise Broken(f"quiescence: nobody is stopped, and {late}") from late
            self.world.note("refused", f"TimedOut: {late}")
        except IkigaiError as refusal:
            self.world.note("refused", f"{type(refusal).__name__}: {refusal}")
        else:
            then(answer)

    def prompted(self, agent: AgentRef) -> None:
        """Prompt an agent with a text of its own; nobody waits."""
        text = self.facts.new("prompt")
        self.attempt(lambda: agent.prompt(text), lambda future: self._note_prompt(text, future))

    def _note_prompt(self, text: str, future: Future[Reply]) -> None:
        self.facts.prompts[text] = (self.world.calling, future)

    def _pass(self, leases: float) -> None:
        assert self.world.ownership is not None
        seconds = leases * self.world.ownership.lease
        self.attempt(lambda: self.world.sleep(seconds))

    # Rules for agents

    @rule(host=HOSTS, who=AGENTS, prompt=st.booleans(), reply=replies(TOOL_CALLS))
    def fork(self, host: int, who: int, prompt: bool, reply: ScriptedReply) -> None:
        """An agent makes a child."""
        if len(self.living()) >= self.LIMIT:
            return
        parent = self.handle(host, who)
        self.script(parent, reply)
        text = self.facts.new("prompt") if prompt else None
        self.attempt(
            lambda: parent.fork(text, timeout=PATIENCE), lambda child: self.ledger.known.setdefault(child.uuid)
        )

    @rule(host=HOSTS, who=AGENTS, answers=st.lists(replies(TOOL_CALLS), max_size=2))
    def prompt(self, host: int, who: int, answers: list[ScriptedReply]) -> None:
        """An agent is prompted, and nobody waits for it."""
        agent = self.handle(host, who)
        self.script(agent, *answers)
        self.prompted(agent)

    @rule(host=HOSTS, who=AGENTS, how=st.sampled_from(("slow", "wait", WORK, "crash")))
    def prompt_and_go_on(self, host: int, who: int, how: str) -> None:
        """An agent is prompted, and whatever comes next finds it in the midst of its turn, or after a crash."""
        agent = self.handle(host, who)
        calls = {"wait": ToolCall("wait", {"timeout": 5}), WORK: ToolCall(WORK)}
        replied: dict[str, ScriptedReply] = {"slow": SLOW, "crash": LookupError("a defect of its own")}
        self.script(agent, replied[how] if how in replied else Reply("", (calls[how],)))
        self.prompted(agent)
        self.attempt(self.world.settle)

    @rule(host=HOSTS, sender=AGENTS, recipient=AGENTS, body=st.sampled_from("abc"))
    def send(self, host: int, sender: int, recipient: int, body: str) -> None:
        """An agent sends a mail."""
        self.send_mail(self.handle(host, sender), self.handle(host, recipient), body)

    @rule(host=HOSTS, who=AGENTS)
    def read_mail(self, host: int, who: int) -> None:
        """An agent reads its mail."""
        self.read_mail_of(self.handle(host, who))

    @rule(host=HOSTS, who=AGENTS)
    def mark(self, host: int, who: int) -> None:
        """An agent sets a mark."""
        self._mark(self.handle(host, who))

    @rule(host=HOSTS, who=AGENTS, commit=st.integers(1, 4), committed=st.booleans())
    def mark_and_crash(self, host: int, who: int, commit: int, committed: bool) -> None:
        """An agent sets a mark, and whichever host makes one of the next commits ends there."""
        agent = self.handle(host, who)
        self.world.crash_at(CrashPoint(commit, committed))
        self._mark(agent)

    def _mark(self, agent: AgentRef) -> None:
        label = self.facts.new("mark")

        def marked(position: int) -> None:
            self.ledger.marks[agent.uuid, position] = label

        self.attempt(lambda: agent.mark(label, timeout=PATIENCE), marked)

    @rule(host=HOSTS, who=AGENTS, what=st.sampled_from(sorted(REQUESTS)))
    def ask(self, host: int, who: int, what: str) -> None:
        """An agent is asked to do something itself."""
        agent = self.handle(host, who)
        self.attempt(lambda: REQUESTS[what](agent))

    @rule(host=HOSTS, who=AGENTS, signal=signals(), spread=st.booleans())
    def signal(self, host: int, who: int, signal: Signal, spread: bool) -> None:
        """Somebody sends a signal."""
        agent = self.handle(host, who)
        self.attempt(lambda: agent.signal(signal, timeout=PATIENCE, cascade=spread))

    @rule(host=HOSTS, who=AGENTS, spread=st.booleans())
    def kill_agent(self, host: int, who: int, spread: bool) -> None:
        """An agent is killed, perhaps with all below it."""
        agent = self.handle(host, who)
        below = [one.uuid for one in _below(self.records(), agent.uuid)] if spread else []
        self.attempt(
            lambda: agent.kill(cascade=spread, timeout=PATIENCE),
            lambda victims: self._killed([victim.uuid for victim in victims], below),
        )

    def _killed(self, victims: Sequence[str], below: Sequence[str]) -> None:
        self.ledger.ended.update(victims)
        if left := {one.uuid for one in self.living()} & set(below):
            raise Broken(f"cascade: {', '.join(sorted(left))} outlived it")

    @rule(host=HOSTS, who=AGENTS, strategy=st.sampled_from(("one_for_one", "one_for_all", "rest_for_one")))
    def supervise(self, host: int, who: int, strategy: str) -> None:
        """An agent restarts its children in another way."""
        agent = self.handle(host, who)
        self.attempt(lambda: agent.supervise(strategy=strategy, timeout=PATIENCE))

    @rule(host=HOSTS, who=AGENTS, child=AGENTS)
    def adopt(self, host: int, who: int, child: int) -> None:
        """An agent adopts another one."""
        by, adopted = self.handle(host, who), self.handle(host, child)
        self.attempt(lambda: by.adopt(adopted, timeout=PATIENCE))

    # Rules for hosts

    @rule(who=AGENTS, to=HOSTS)
    def move(self, who: int, to: int) -> None:
        """An agent moves to another host, with those below it."""
        agent = self.handle(0, who).uuid
        owner = next((one.owner for one in self.living() if one.uuid == agent), None)
        for host in self.world.hosts:
            if host.host_id == owner and host.answers:
                self.attempt(lambda: host.move(agent, self.host(to), PATIENCE))  # noqa: B023 - it is called at once

    @rule(host=HOSTS)
    def drain(self, host: int) -> None:
        """A host gives all its agents away."""
        drained = self.host(host)
        self.attempt(lambda: drained.drain(PATIENCE))

    @rule(host=HOSTS)
    def kill(self, host: int) -> None:
        """The process of a host ends where it stands."""
        self.host(host).kill()

    @rule(commit=st.integers(1, 6), committed=st.booleans())
    def crash_soon(self, commit: int, committed: bool) -> None:
        """Whichever host makes one of the next commits ends there."""
        self.world.crash_at(CrashPoint(commit, committed))

    @rule(host=HOSTS, leases=st.sampled_from((0.3, 0.7, 0.8, 0.9, 1.0, 1.1, 2.0)))
    def stop_for(self, host: int, leases: float) -> None:
        """A host is stopped for a time."""
        self._stop(self.host(host), leases)

    @rule(who=AGENTS, leases=st.sampled_from((1.1, 2.0)))
    def stop_at_work(self, who: int, leases: float) -> None:
        """The host of an agent is stopped in the midst of a turn, and wakes up when others run the agent."""
        agent = self.handle(0, who)
        self.script(agent, SLOW)
        self.prompted(agent)
        self.attempt(self.world.settle)
        owner = next((one.owner for one in self.living() if one.uuid == agent.uuid), None)
        for host in self.world.hosts:
            if host.host_id == owner and host.answers:
                self._stop(host, leases)

    def _stop(self, host: SimulatedHost, leases: float) -> None:
        assert self.world.ownership is not None
        self.world.freeze(host.process, leases * self.world.ownership.lease)
        self._pass(leases)

    @rule(host=HOSTS, ahead=st.booleans())
    def kill_and_leap(self, host: int, ahead: bool) -> None:
        """The process of a host ends, and the wall clock of the server is set: the others notice all the same."""
        self.host(host).kill()
        self.world.clock.jump(LEAP if ahead else -LEAP)
        self._pass(LEASES + 1)

    @rule(host=HOSTS)
    def freeze(self, host: int) -> None:
        """A host is stopped."""
        self.host(host).freeze()

    @rule(host=HOSTS, silent=st.booleans())
    def partition(self, host: int, silent: bool) -> None:
        """A host is cut off from the database."""
        self.host(host).partition(silent=silent)

    @rule(host=HOSTS)
    def disconnect(self, host: int) -> None:
        """The connections of a host break, and it makes them again: nobody takes it for dead meanwhile."""
        self.host(host).disconnect()
        self._pass(0.5)

    @rule()
    def recover(self) -> None:
        """Hosts that are stopped or cut off go on."""
        for host in self.world.hosts:
            if host.running is not None and (host.frozen or host.process.store.link is not Link.OPEN):
                self.attempt(host.recover)

    @rule()
    def revive(self) -> None:
        """Every host that has ended begins anew, as one does that has given its agents away; the others go on."""
        for host in self.world.hosts:
            if host.running is not None:
                host.recover()
                if host in self.facts.takers():
                    continue
                host.kill()
            self._start(host)

    def _start(self, host: SimulatedHost) -> None:
        while host.running is None:
            try:
                host.start()
            except ProcessCrashed:
                self.world.note("refused", "the host has ended as it began")
            except IkigaiError as error:
                if not self.facts.excuses():
                    raise
                self.world.note("refused", f"{type(error).__name__}: {error}")
                host.kill()

    @rule(host=st.none() | HOSTS, ahead=st.booleans())
    def set_clock(self, host: int | None, ahead: bool) -> None:
        """The wall clock of a host, or of the server, is set an hour ahead, or back."""
        clock = self.world.clock if host is None else self.host(host).process.clock
        clock.jump(LEAP if ahead else -LEAP)

    @rule(seconds=st.sampled_from((1, 5, 15, 30)))
    def time_passes(self, seconds: int) -> None:
        """Time passes."""
        self.attempt(lambda: self.world.sleep(seconds))

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

    @precondition(lambda self: self.facts.prompts)
    @rule()
    def comes_to_rest(self) -> None:
        """Every host is there, and everything happens that can; then nobody may be left waiting."""
        for _ in range(MOST_PERIODS):  # one turn may wait for minutes, and another one behind it
            self.revive()
            self._pass(LEASES)
            self.attempt(lambda: self.world.sleep(PERIOD))
            if all(host.answers for host in self.world.hosts) and not self.facts.at_work(self.living()):
                break
        self.facts.check_rest(self.living())

    # Invariants

    @invariant()
    def histories_are_what_copying_gives(self) -> None:
        """History, as it is in the database; a host is there after every rule."""
        self.host(0)
        self.facts.check_histories(self.ledger)

    @invariant()
    def siblings_share_what_they_were_sent(self) -> None:
        """What was sent to siblings is equal up to the fork."""
        self.ledger.check_requests(self.world)

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        """Agents live or are dead as was said; mails, marks, prompts and requests are there, each once."""
        self.ledger.check_acknowledged(self.system)
        self.facts.check()
        self.work.check()


def _below(records: Sequence[AgentRecord], top: str) -> list[AgentRecord]:
    """Those of these agents that live below one."""
    found, above = list[AgentRecord](), {top}
    while more := [one for one in records if one.living and one.supervisor_uuid in above and one.uuid not in above]:
        found += more
        above |= {one.uuid for one in more}
    return found
