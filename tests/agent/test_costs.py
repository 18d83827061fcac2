"""What a request needs: told from the latest replies, however long the history is."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from ikigai_actors import ActorSystem, FunctionProvider
from ikigai_actors.agent.agent_log import AgentLog
from ikigai_actors.agent.costs import Costs
from ikigai_actors.agent.turn.state import Step
from ikigai_actors.records.log.log import Log, Spoken
from ikigai_actors.records.log.log_unit import LogUnit
from tests.kit.blocking_provider import DEADLINE

FEW = 8
"""Replies that are looked at, in place of dozens."""


class Counted:
    """A log that counts the messages that are looked at."""

    def __init__(self, log: Log) -> None:
        self._log, self.head, self.looked = log, log.head, 0

    @property
    def current(self) -> "Counted":
        """The log of the agent."""
        return self

    def conversation(self, *bounds: int) -> Iterator[Spoken]:
        """See `Log.conversation`."""
        for spoken in self._log.conversation(*bounds):
            self.looked += 1
            yield spoken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def test_of_a_function_that_tells_no_tokens_only_the_latest_replies_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ikigai_actors.agent.costs.REPLIES", FEW)
    with ActorSystem.open(":memory:", FunctionProvider(lambda _: "fine")) as system:
        for number in range(2 * FEW):
            system.root.prompt(f"{number}").get(timeout=DEADLINE)
        actor = system._actor(system.root.uuid)
        assert actor._log.current is not None
        log = Counted(actor._log.current)
        costs = Costs(actor.runtime, cast("AgentLog", log))
        asks = Step(actor.state, LogUnit(system.root.uuid, (), asks=True))
        costs.filled(actor.state, asks, None, False)
        first = log.looked
        costs.filled(actor.state, asks, None, False)
    assert first <= 2 * FEW + 2
    assert log.looked - first <= 2
