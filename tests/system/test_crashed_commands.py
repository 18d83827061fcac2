"""Who asks an agent for something that crashes it gets an answer: first the error, then the agent is restarted."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, ScriptedProvider
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.errors import AgentError, IkigaiError
from ikigai_actors.events import Instrument
from ikigai_actors.records.fsck.check import check
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE

MEMORY = "sqlite:///:memory:"


class Failing(SystemClock):
    """A clock that fails once, when an agent's actor looks at it. Every decision looks at the clock."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def now_ms(self) -> int:
        self._look()
        return super().now_ms()

    def monotonic(self) -> float:
        self._look()
        return super().monotonic()

    def _look(self) -> None:
        if threading.current_thread().name.startswith("ikigai-worker") and self.error is not None:
            error, self.error = self.error, None
            raise error


class Behind(Instrument):
    """Lets a clock fail right behind the next commit of an agent."""

    def __init__(self, clock: Failing) -> None:
        self._clock = clock
        self.error: Exception | None = None

    def commit_ends(self, agent: Tally, error: IkigaiError | None) -> None:
        self._clock.error, self.error = self.error, None


COMMANDS: dict[str, Callable[[AgentRef], Any]] = {
    "prompt": lambda agent: agent.aio.prompt("And?"),
    "fork": lambda agent: agent.aio.fork("Go."),
    "fork at": lambda agent: agent.aio.fork("Go.", at=1),
    "configure": lambda agent: agent.aio.configure(temperature=0.5),
    "mark": lambda agent: agent.aio.mark("here"),
    "rewind": lambda agent: agent.aio.rewind(),
    "undo": lambda agent: agent.aio.undo(),
    "clear": lambda agent: agent.aio.clear(),
    "compact": lambda agent: agent.aio.compact(),
    "uncompact": lambda agent: agent.aio.uncompact(),
    "merge": lambda agent: agent.aio.merge("other"),
    "note": lambda agent: agent.aio.note({"why": "so"}),
    "resume": lambda agent: agent.aio.resume(),
    "exit": lambda agent: agent.aio.exit("enough"),
    "reply": lambda agent: agent.aio.reply(),
}


WRONG, ENDS = TypeError("no number"), SystemExit(3)


@pytest.mark.sample(1, "a command each")
@pytest.mark.parametrize(("what", "error"), [*((what, WRONG) for what in COMMANDS), ("prompt", ENDS), ("mark", ENDS)])
def test_a_command_that_crashes_its_agent_is_answered_and_the_agent_goes_on(what: str, error: BaseException) -> None:
    clock = Failing()
    with ActorSystem.open(
        MEMORY, ScriptedProvider(lambda request: "well"), parts=replace(SYSTEM_PLATFORM, clock=clock)
    ) as system:
        agent = system.root.fork(name="agent")
        other = agent.fork("Look.", name="other")
        assert other.reply(timeout=DEADLINE).text == "well"
        agent.mark("start")
        assert agent.prompt("Go.").get(timeout=DEADLINE).text == "well"
        clock.error = error
        with pytest.raises(AgentError, match="crashed as it was to do this, and has not done it: ") as raised:
            COMMANDS[what](agent).get(timeout=DEADLINE)
        assert (raised.value.agent, raised.value.__cause__) == (agent.uuid, error)
        assert agent.prompt("Go on.").get(timeout=DEADLINE).text == "well"
        assert [message.content for message in agent.history() if message.kind == "user"] == ["Go.", "Go on."]
        assert check(system._store) == []


def test_what_is_committed_as_its_agent_crashes_is_answered_and_begun() -> None:
    clock = Failing()
    behind = Behind(clock)
    with ActorSystem.open(
        MEMORY,
        ScriptedProvider(lambda request: "well"),
        instruments=[behind],
        parts=replace(SYSTEM_PLATFORM, clock=clock),
    ) as system:
        agent = system.root.fork(name="agent")
        assert agent.prompt("Go.").get(timeout=DEADLINE).text == "well"
        behind.error = LookupError("no clock")
        position = agent.mark("here", timeout=DEADLINE)
        assert agent.context().marks == (("here", position),)
        behind.error = LookupError("no clock")
        child = agent.fork("Look.", timeout=DEADLINE)
        assert child.reply(timeout=DEADLINE).text == "well"
        behind.error = LookupError("no clock")
        assert agent.prompt("Go on.").get(timeout=DEADLINE).text == "well"
        assert check(system._store) == []


def test_who_waits_for_a_log_is_answered_when_reading_it_crashes_the_agent(new_sqlite: NewDatabase) -> None:
    clock, database, well = Failing(), new_sqlite(), ScriptedProvider(lambda request: "well")
    with ActorSystem.open(database, well) as system:
        agent = system.root.fork(name="agent")
        assert agent.prompt("Go.").get(timeout=DEADLINE).text == "well"
    with ActorSystem.open(database, well, parts=replace(SYSTEM_PLATFORM, clock=clock)) as system:
        agent = system.agent("agent")
        clock.error = TypeError("no number")
        with pytest.raises(AgentError, match="crashed as it was to do this"):
            agent.aio.mark("here").get(timeout=DEADLINE)
        assert agent.prompt("Go on.").get(timeout=DEADLINE).text == "well"


@pytest.mark.thorough("a command that crashes its agent, as above, from elsewhere")
def test_another_process_is_answered_as_well(new_sqlite: NewDatabase) -> None:
    clock, database = Failing(), new_sqlite()
    parts = replace(SYSTEM_PLATFORM, clock=clock)
    with ActorSystem.open(database, ScriptedProvider(lambda request: "well"), parts=parts) as system:
        agent = system.root.fork(name="agent")
        agent.mark("start")
        with AttachedSystem.open(database) as attached:
            clock.error = TypeError("no number")
            with pytest.raises(AgentError, match="has not done it: TypeError: no number"):
                attached.handle(agent.uuid).configure(temperature=0.5, timeout=DEADLINE)
            assert attached.handle(agent.uuid).mark("end", timeout=DEADLINE)
