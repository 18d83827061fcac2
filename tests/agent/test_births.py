"""A child between the commit of its row and the first thing that it does."""

import threading
from collections.abc import Iterator

import pytest

from ikigai_actors import ActorSystem, AgentRef, NameTaken, ScriptedProvider
from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.agent.turn import events as on
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually


class Stall:
    """Somebody who asks an agent, and takes the answer so slowly that the worker is busy meanwhile."""

    def __init__(self) -> None:
        self._answered, self._leave = threading.Event(), threading.Event()

    def settle(self, value: object) -> None:
        """Take the answer."""
        self._answered.set()
        assert self._leave.wait(DEADLINE)

    def ask(self, agent: AgentRef) -> None:
        """Ask an agent."""
        agent.system._target(agent.uuid).deliver(on.GetOutcome(self))

    def wait_until_answered(self) -> None:
        """Return when the worker is busy."""
        assert self._answered.wait(DEADLINE)

    def end(self) -> None:
        """Let the worker go."""
        self._leave.set()


@pytest.fixture
def stalls() -> Iterator[tuple[Stall, Stall]]:
    made = Stall(), Stall()
    yield made
    for stall in made:
        stall.end()


def test_a_child_can_be_prompted_as_soon_as_the_registry_tells_of_it(
    database: str, stalls: tuple[Stall, Stall]
) -> None:
    script = ScriptedProvider(lambda request: f"{request.name} is here")
    with ActorSystem.open(database, provider=script, workers=1) as system:
        system.root.mark()  # its log is read, so its children have theirs
        first, second = system.root.fork(name="first"), system.root.fork(name="second")
        before, after = stalls
        before.ask(first)
        before.wait_until_answered()  # the one worker is busy: what comes now waits in order
        fork = system.root.aio.fork("Work.", name="child")
        after.ask(second)
        before.end()
        after.wait_until_answered()  # the fork was handed over, and its verdict waits for the worker
        eventually(lambda: "child" in [record.name for record in system.agents()], "the child's row")
        assert not fork.done()
        try:
            asked = system.agent("child").prompt("Are you there?")
        finally:
            after.end()
        assert asked.get(timeout=DEADLINE).text == "child is here"
        assert [message.content for message in fork.get(timeout=DEADLINE).sync.history()][-4:] == [
            "Work.",
            "child is here",
            "Are you there?",
            "child is here",
        ]


def test_nothing_is_left_of_a_child_that_the_store_refuses(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider([])) as system:
        system.root.fork(name="child")
        with pytest.raises(NameTaken):
            system.root.fork(name="child")
        assert system.statistics().agents == len(system.agents()) == 2


def test_a_fork_that_times_out_says_which_child_it_may_still_make() -> None:
    gate = Gate()
    with ActorSystem.open(":memory:", gate.provider) as system:
        system.root.prompt("work")
        gate.wait_until_asked()
        with pytest.raises(TimedOut, match="the fork may still happen: the child is agent ") as late:
            system.root.fork(timeout=0)
        gate.open()
        system.root.reply(timeout=DEADLINE)
        eventually(lambda: [child.uuid in str(late.value) for child in system.root.children()] == [True], "the child")
