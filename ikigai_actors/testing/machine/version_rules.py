"""Rules of `FleetMachine` that give hosts other programs: another version, or another build."""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE
from ikigai_actors.testing.machine.fixtures import WORK
from ikigai_actors.testing.machine.fleet_base import BUILDS, CLOCKS_APART, HOSTS, FleetStage
from ikigai_actors.testing.machine.version_oracle import STEPS
from ikigai_actors.testing.simulation.faults import CrashPoint


class VersionRules(FleetStage):
    """The rules of `FleetMachine` for versions and builds."""

    @rule(
        host=HOSTS,
        steps=st.integers(0, len(STEPS)),
        build=st.sampled_from(BUILDS),
        apart=st.sampled_from(CLOCKS_APART),
    )
    def install(self, host: int, steps: int, build: str, apart: float) -> None:
        """Restart a host with another program, or with an earlier one; its clock may differ."""
        installed = self.host(host)
        installed.kill()
        installed.migrations, installed.build, installed.apart = STEPS[:steps], build, apart
        self.start(installed)

    @rule(who=AGENTS, commit=st.integers(1, 8), committed=st.booleans())
    def ask_and_crash(self, who: int, commit: int, committed: bool) -> None:
        """Let a person approve a call, and crash the host when the call is asked about, approved or begun.

        Other hosts go on with the call.
        """
        agent = self.agent(who)
        self.attempt(lambda: agent.set_rule("ask", WORK, timeout=PATIENCE))
        self.script(agent, Reply("", (ToolCall(WORK),)))
        self.world.crash_at(CrashPoint(commit, committed))
        self.prompted(agent)
        self.attempt(self.world.settle)
