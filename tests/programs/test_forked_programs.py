"""A fork of a program in mid-turn: it has the acts of its lead so far, waits for the same turns, and goes on alone."""

import pytest

from ikigai_actors import AgentRef, Child, current_agent
from ikigai_actors.programs import gather, program, step
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.programs.test_parking import gated, is_sound

DONE: list[str] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


def do(what: str) -> str:
    DONE.append(what)
    return what.upper()


@program
def lead(task: str) -> str:
    me = current_agent()
    kids = [me.fork(name=name, model=name) for name in ("mast", "sail")]
    begun = step(do, "begin")
    asked = [kid.prompt(task) for kid in kids]
    middle = step(do, "middle")
    return f"{begun} {middle} {' '.join(reply.text for reply in gather(*asked))} {step(do, 'end')}"


def before_wait(lead: AgentRef) -> int:
    """The position before the wait of a lead, where nothing is in progress."""
    waits = (message for message in lead.history() if "wait" in str(message.data.get("tool_calls")))
    return next(waits).id - 1


@pytest.mark.sample(1, "turns that were asked for")
@pytest.mark.parametrize("over", ["none", "one", "both"])
def test_a_fork_of_a_program_waits_for_the_turns_that_its_lead_has_asked_for(durable: str, over: str) -> None:
    with gated(durable, lead) as (system, boss, mast, sail):
        reply = boss.prompt("go")
        mast.wait_until_asked()
        sail.wait_until_asked()
        eventually(lambda: boss.history()[-1].kind == "tool_call" and len(DONE) == 2, "its wait")
        for gate in {"none": [], "one": [sail], "both": [mast, sail]}[over]:
            gate.open()
        if over == "both":
            reply.get(timeout=DEADLINE)
        [fork] = system.root.fork_many([Child(boss, at=before_wait(boss), go=True)])
        mast.open()
        sail.open()
        assert fork.reply(timeout=DEADLINE).text == "BEGIN MIDDLE mast sail END"
        assert reply.get(timeout=DEADLINE).text == "BEGIN MIDDLE mast sail END"
        assert sorted(DONE) == ["begin", "end", "end", "middle"]
        assert [len(kid.history()) for kid in boss.children()]
    is_sound(durable)
