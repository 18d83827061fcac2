"""`FleetMachine`: Hypothesis generates programs for agents that several hosts share, with faults of the hosts.

Any host is asked for any agent; hosts are killed, stopped, cut off, drained and started again, and agents are moved.
The invariants, by the names with which their failures begin: those of each commit and request that `AgentTreeMachine`
has, and

    owner, handed, epoch, believed, noticed
                          the owners of shards, and the ends of hosts: see `ikigai_actors.testing.simulation.ownership`
    answered              a prompt opens one turn, and only acknowledged prompts have replies
    remote-command        a command to an agent on another host is carried out once, and answered
    acknowledged          acknowledged agents, mails, marks and deaths are in the database
    history               the history of each agent equals that of a model which copies histories at each fork
    once, mail, rule, timer, delivery, arrival, question, group, monitor, cascade, supervised, quiescence
                          as `AgentTreeMachine` has them
    former                as `AgentTreeMachine` has it
    together              siblings that are restarted together live in the shard of their supervisor
    placed                at rest each living agent has an actor, or can be woken, on the host of its shard alone
    followed              an actor's state has all changes that other hosts have made to its agent
    told                  no caller of an agent gets an error because the agent has moved
    heard                 a prompt's caller gets the answer that is in the log, and a subscriber of a host gets each
                          message once, in the order of its log
    program, build        the versions of hosts beside newer tables, and the build that begins an approved call: see
                          `ikigai_actors.testing.machine.version_oracle`
    older                 no host writes into a copy of the database that is older than the host's last commit
"""

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.providers.scripted import ScriptedReply
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE
from ikigai_actors.testing.machine.fixtures import SLOW, WORK
from ikigai_actors.testing.machine.fleet_base import HOSTS
from ikigai_actors.testing.machine.fleet_targeted_rules import AimedFleetRules
from ikigai_actors.testing.machine.question_rules import QuestionRules
from ikigai_actors.testing.machine.rules import AgentRules
from ikigai_actors.testing.machine.street_rules import StreetRules
from ikigai_actors.testing.machine.version_rules import VersionRules
from ikigai_actors.testing.simulation.faults import CrashPoint
from ikigai_actors.testing.simulation.hosts import SimulatedHost
from ikigai_actors.testing.simulation.ownership import LEASES
from ikigai_actors.testing.simulation.process import LEAP
from supervisors.signals import Signal


class FleetMachine(AimedFleetRules, VersionRules, StreetRules, QuestionRules, AgentRules):
    """A state machine for agents that several hosts share. Subclass it to add rules, tools and invariants."""

    # Rules for agents

    @rule(who=AGENTS, how=st.sampled_from(("slow", "wait", WORK, "crash")))
    def prompt_and_go_on(self, who: int, how: str) -> None:
        """Prompt an agent, so that the next rule finds the agent in its turn, or after a crash."""
        agent = self.agent(who)
        calls = {"wait": ToolCall("wait", {"timeout": 5}), WORK: ToolCall(WORK)}
        replied: dict[str, ScriptedReply] = {"slow": SLOW, "crash": LookupError("a defect of its own")}
        self.script(agent, replied[how] if how in replied else Reply("", (calls[how],)))
        self.prompted(agent)
        self.attempt(self.world.settle)

    @rule(who=AGENTS, commit=st.integers(1, 4), committed=st.booleans())
    def mark_and_crash(self, who: int, commit: int, committed: bool) -> None:
        """Set a mark, and end the process of the host that makes one of the next commits."""
        agent = self.agent(who)
        self.world.crash_at(CrashPoint(commit, committed))
        self.set_mark(agent, "here")

    @rule(who=AGENTS, other=AGENTS, how=st.sampled_from(("rename", "adopt", "stop", "join", "supervise", "remind")))
    def change_at_rest(self, who: int, other: int, how: str) -> None:
        """Change a row in place between two moments at rest, whose values are checked later."""
        self.comes_to_rest()
        acts: dict[str, Callable[[], None]] = {
            "rename": lambda: self.rename(who, "ann"),
            "adopt": lambda: self.adopt(who, other),
            "stop": lambda: self.send_signal(self.agent(who), Signal.STOP),
            "join": lambda: self.join_or_leave(who, "tea", joins=True),
            "supervise": lambda: self.supervise(who, "one_for_all"),
            "remind": lambda: self.remind(who, 5, prompt=False),
        }
        acts[how]()
        self.comes_to_rest()

    # Rules for hosts

    @rule(who=AGENTS, to=HOSTS)
    def move(self, who: int, to: int) -> None:
        """Move an agent, with the agents below it, to another host."""
        agent = self.agent(who).uuid
        owner = next((record.owner for record in self.living() if record.uuid == agent), None)
        for host in self.world.hosts:
            if host.host_id == owner and host.answers:
                self.attempt(lambda: host.move(agent, self.host(to), PATIENCE))  # noqa: B023 - it is called at once

    @rule(host=HOSTS)
    def drain(self, host: int) -> None:
        """Let a host give all its agents away."""
        drained = self.host(host)
        self.attempt(lambda: drained.drain(PATIENCE))

    @rule(host=HOSTS)
    def kill_host(self, host: int) -> None:
        """Kill the process of a host at its current step."""
        self.host(host).kill()

    @rule(host=HOSTS, leases=st.sampled_from((0.3, 0.7, 0.8, 0.9, 1.0, 1.1, 2.0)))
    def stop_for(self, host: int, leases: float) -> None:
        """Stop a host for the time of some leases, and then let it go on."""
        self._stop(self.host(host), leases)

    @rule(who=AGENTS, leases=st.sampled_from((1.1, 2.0)))
    def stop_at_work(self, who: int, leases: float) -> None:
        """Stop the host of an agent in the middle of a turn, until other hosts run the agent."""
        agent = self.agent(who)
        self.script(agent, SLOW)
        self.prompted(agent)
        self.attempt(self.world.settle)
        owner = next((record.owner for record in self.living() if record.uuid == agent.uuid), None)
        for host in self.world.hosts:
            if host.host_id == owner and host.answers:
                self._stop(host, leases)

    def _stop(self, host: SimulatedHost, leases: float) -> None:
        self.world.freeze(host.process, leases * self.lease)
        self.pass_leases(leases)

    @rule(host=HOSTS, ahead=st.booleans())
    def kill_and_leap(self, host: int, ahead: bool) -> None:
        """Kill a host, and set the wall clock of the database server.

        The other hosts must notice the death all the same.
        """
        self.host(host).kill()
        self.world.clock.jump(LEAP if ahead else -LEAP)
        self.pass_leases(LEASES + 1)

    @rule(host=HOSTS)
    def freeze(self, host: int) -> None:
        """Stop the process of a host, until the rule `recover`."""
        self.host(host).freeze()

    @rule(host=HOSTS, silent=st.booleans())
    def partition(self, host: int, silent: bool) -> None:
        """Cut a host off from the database, until the rule `recover`."""
        self.host(host).partition(silent=silent)

    @rule(host=HOSTS, seconds=st.sampled_from((0.3, 0.5, 1.0)))
    def hear_late(self, host: int, seconds: float) -> None:
        """Delay the hints about commits that a host gets by some seconds."""
        self.host(host).hear_late(seconds)

    @rule(host=HOSTS, begins=st.booleans())
    def look_on(self, host: int, begins: bool) -> None:
        """Begin or end a subscription at a host to the events of its agents and to replies in progress."""
        self.attempt(lambda: self.facts.look_on(self.host(host), begins))

    @rule(host=HOSTS)
    def disconnect(self, host: int) -> None:
        """Break the connections of a host shortly after a renewal of its lease. No other host may take it for dead."""
        broken = self.host(host)
        self.pass_leases(1.1)  # it is there for a whole lease
        for _ in range(3):
            if broken.answers:
                broken.disconnect()
            self.pass_leases(0.25)

    @rule()
    def recover(self) -> None:
        """Let hosts go on that are stopped, cut off or delayed."""
        for host in self.world.hosts:
            if host.running is not None:
                self.attempt(host.recover)

    @rule(host=st.none() | HOSTS, ahead=st.booleans())
    def set_clock(self, host: int | None, ahead: bool) -> None:
        """Set the wall clock of a host, or of the server, an hour ahead or back."""
        clock = self.world.clock if host is None else self.host(host).process.clock
        clock.jump(LEAP if ahead else -LEAP)

    @rule(seconds=st.sampled_from((1, 5, 15, 30)))
    def time_passes(self, seconds: int) -> None:
        """Let some seconds pass."""
        self.attempt(lambda: self.world.sleep(seconds))

    # Invariants

    @invariant()
    def histories_are_what_copying_gives(self) -> None:
        """Check the invariant ``history`` in the database. There is a running host after every rule."""
        self.host(0)
        self.ledger.check_stored(self.world.process.looked_at)

    def look_at_work(self) -> None:
        super().look_at_work()
        self.facts.check()
