"""A time-out says why the answer has not come, and what helps."""

from collections.abc import Callable

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    Budget,
    Reply,
    ScriptedProvider,
    Signal,
    TimedOut,
    ToolCall,
    Usage,
    tool,
)
from ikigai_actors.agent.turn.calls import Call
from ikigai_actors.reach.conversation import take_in
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.remote.lateness import why_late_in
from tests.kit.blocking_provider import DEADLINE, Gate, Hanging
from tests.kit.databases import eventually

ASKS = "buyer asks about bash: approve or deny it (system.approvals; /approve in a shell)."


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("idle", ""),
        ("waiting for the model", "buyer is waiting for the model."),
        ("running tools", "buyer is running tools."),
        ("in a turn", "buyer is in a turn."),
        ("terminating", "buyer is terminating."),
        ("waits for ann, bob", "buyer waits for ann, bob."),
        ("waiting for budget", "buyer waits for budget of lead: grant more."),
        ("waiting for approval", ASKS),
        ("stopped", "buyer is stopped: the signal CONT lets it go on."),
        ("interrupted", "buyer was cut off in its turn: resume() goes on with it."),
    ],
)
def test_each_state_has_its_sentence(state: str, sentence: str) -> None:
    asked = (Call("1", "bash", {}), Call("2", "bash", {}))
    assert why_late_in("buyer", state, "lead", asked) == sentence


def why(ask: Callable[[], object]) -> str:
    with pytest.raises(TimedOut) as late:
        ask()
    assert str(late.value).startswith("No answer within 0 s; ")
    return str(late.value).partition(" may still be carried out. ")[2]


def why_no_reply(agent: AgentRef) -> str:
    return why(lambda: agent.reply(timeout=0))


@tool(policy="ask")
def bash(command: str) -> str:
    """Run a command."""
    raise AssertionError("Nobody allowed it.")


def test_whoever_waits_for_a_budget_or_a_decision_is_told_so_in_every_process(durable: str) -> None:
    call = Reply(tool_calls=(ToolCall("bash", {"command": "ls"}),), stop_reason="tool_use", usage=Usage(100, 50))
    script = ScriptedProvider([call, call])
    with ActorSystem.open(durable, script, tools=[bash], approvals="ask") as system:
        buyer = system.root.fork("go", name="buyer")
        eventually(lambda: buyer.state == "waiting for approval", "the question")
        lead = system.root.fork(name="lead", budget=Budget(tokens=1))
        lead.charge(tokens=2)
        poor = lead.fork("go", name="poor")
        eventually(lambda: poor.state == "waiting for budget", "the end of the budget")
        with AttachedSystem.open(durable) as attached:
            for place in (system, attached):
                assert why_no_reply(place.agent("buyer")) == ASKS
                assert why_no_reply(place.agent("poor")) == "poor waits for budget of lead: grant more."


def test_every_command_that_waits_for_a_turn_says_why_it_waits(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, gate.provider) as system:
        kid = system.root.fork(name="kid")
        answer = kid.prompt("go")
        gate.wait_until_asked()
        asked: list[Callable[[AgentRef], object]] = [
            lambda kid: answer.get(timeout=0),
            lambda kid: kid.mark(timeout=0),
            lambda kid: kid.configure(system="Be brief.", timeout=0),
        ]
        for ask in asked:
            assert why(lambda ask=ask: ask(kid)) == "kid is waiting for the model."  # type: ignore[misc]
        gate.open()
        answer.get(timeout=DEADLINE)


def test_a_stopped_agent_is_said_to_be(database: str) -> None:
    with ActorSystem.open(database, Hanging("So")) as system:
        kid = system.root.fork(name="kid")
        kid.signal(Signal.STOP)
        answer = kid.prompt("go")
        take_in(system, DEADLINE)
        assert why(lambda: answer.get(timeout=0)) == "kid is stopped: the signal CONT lets it go on."
