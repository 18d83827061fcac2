"""Errors about an agent call it by its name, as people do, and have its uuid as an attribute."""

import re

import pytest

from ikigai_actors import ActorSystem, FunctionProvider, OfflineProvider, Request, Signal, current_agent
from ikigai_actors.errors import AgentError, IkigaiError, NothingToCompact, NoTurn, TurnInterrupted
from ikigai_actors.records.agents.words import words_of
from tests.kit.blocking_provider import DEADLINE, Gate

UUID = re.compile(r"\b[A-Za-z0-9_-]{22}\b")


def test_an_interrupted_turn_a_dead_agent_and_one_without_a_turn_are_called_by_name() -> None:
    gate = Gate()
    with ActorSystem.open(":memory:", gate.provider) as system:
        kid = system.root.fork(name="kid")
        for named in ("kid", "mate"):
            kid.rename(named)
            with pytest.raises(NoTurn, match=f"^Agent {named} has had no turn"):
                kid.reply(timeout=DEADLINE)
        turn = kid.prompt("go")
        gate.wait_until_asked()
        kid.signal(Signal.INT)
        with pytest.raises(TurnInterrupted, match=r"^The turn of agent mate was interrupted\.$") as raised:
            turn.get(timeout=DEADLINE)
        assert raised.value.agent == kid.uuid
        gate.entered.clear()
        turn = kid.prompt("go")
        gate.wait_until_asked()
        kid.signal(Signal.KILL)
        with pytest.raises(AgentError, match=r"^Agent mate is dead: killed"):
            turn.get(timeout=DEADLINE)


def test_an_agent_without_a_name_is_called_by_its_words() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        kid = system.root.fork()
        with pytest.raises(NothingToCompact, match=f"^Agent {words_of(kid.uuid)} has too short"):
            kid.compact()


def test_code_that_waits_for_its_own_agent_reads_no_uuid() -> None:
    def lead(request: Request) -> str:
        current_agent().fork(name="kid")
        return "never"

    with ActorSystem.open(":memory:", FunctionProvider(lead)) as system:
        with pytest.raises(IkigaiError, match="would wait for the end of its own turn") as raised:
            system.root.fork(name="lead").prompt("go").get(timeout=DEADLINE)
        assert not UUID.search(str(raised.value))
