"""A child between the commit of its row and the first thing that it does."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ikigai_actors import ActorSystem, NameTaken, ScriptedProvider
from ikigai_actors.calls import Facts
from ikigai_actors.tools import Result
from tests.databases import eventually
from tests.gate import DEADLINE


class Turnstile:
    """A tool that nobody calls. What it is, is asked before each decision; when it is shut, the worker waits."""

    name = "turnstile"
    timeout = 1.0
    is_async = False

    def __init__(self) -> None:
        self._shut = threading.Event()
        self._asked, self._passes = threading.Semaphore(0), threading.Semaphore(0)

    @property
    def facts(self) -> Facts:
        """See `Tool.facts`."""
        if self._shut.is_set():
            self._asked.release()
            assert self._passes.acquire(timeout=DEADLINE)
        return Facts()

    def shut(self) -> None:
        """Let decisions wait from here on."""
        self._shut.set()

    def wait_until_asked(self) -> None:
        """Return when a decision waits, one for each call."""
        assert self._asked.acquire(timeout=DEADLINE)

    def let_through(self, decisions: int) -> None:
        """Let so many through."""
        self._passes.release(decisions)

    def open(self) -> None:
        """Let all through, those to come too."""
        self._shut.clear()
        self._passes.release(1_000)

    def describe(self) -> Mapping[str, Any]:
        """See `Tool.describe`."""
        return {"name": self.name, "description": "", "input_schema": {"type": "object", "properties": {}}}

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """See `Tool.call`."""
        return Result("")

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Not asked for: `is_async` is False."""
        return self.call(arguments)


@pytest.fixture
def turnstile() -> Iterator[Turnstile]:
    made = Turnstile()
    yield made
    made.open()


def test_a_child_can_be_prompted_as_soon_as_the_registry_tells_of_it(database: str, turnstile: Turnstile) -> None:
    script = ScriptedProvider(lambda request: f"{request.name} is here")
    with ActorSystem.open(database, provider=script, tools=[turnstile], workers=1) as system:
        first, second = system.root.fork(name="first"), system.root.fork(name="second")
        turnstile.shut()
        first.ask.mark()
        turnstile.wait_until_asked()  # the one worker is busy: what comes now waits in order
        fork = system.root.ask.fork("Work.", name="child")
        second.ask.mark()
        turnstile.let_through(2)  # the first mark and the fork; then the worker is busy with the second mark
        turnstile.wait_until_asked()
        turnstile.wait_until_asked()
        eventually(lambda: "child" in [record.name for record in system.agents()], "the child's row")
        assert not fork.done
        try:
            asked = system.agent("child").prompt("Are you there?")
        finally:
            turnstile.open()
        assert asked.get(timeout=DEADLINE).text == "child is here"
        assert [message.content for message in fork.get(timeout=DEADLINE).history()][-4:] == [
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
