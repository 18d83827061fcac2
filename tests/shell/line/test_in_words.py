"""Line mode at a terminal: a person may hear it, so all of it is words."""

import re

import pytest

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, ToolCall, Usage, tool
from ikigai_actors.shell.line.turn import whole_turn
from tests.kit.sessions import Session, Typist


@tool(policy="allow")
def forecast(day: str) -> str:
    """The weather of a day."""
    return f"{day}: dry"


@pytest.mark.slow("takes a tenth of a second")
def test_trees_histories_and_work_are_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    call = Reply(tool_calls=(ToolCall("forecast", {"day": "Saturday"}),), stop_reason="tool_use", usage=Usage(9, 40))
    script = [call, Reply("It stays dry.", usage=Usage(9, 3)), Reply("Well.", usage=Usage(9, 2))]
    with ActorSystem.open(":memory:", ScriptedProvider(script), tools=[forecast]) as system:
        system.root.rename("planner")
        session = Session(system, capsys, lambda: 80)
        printed = session.by(Typist("Is it dry?", "/fork --name buyer", "Go on.", "/agents", "/diff planner"))
    assert printed[:3] == ["[running forecast day: Saturday]", "[forecast: Saturday: dry]", "  It stays dry."]
    assert "*   buyer  idle  5 inherited + 3 own, below planner" in printed
    assert not re.search("[─-╿]", "".join(printed))  # no lines and boxes


def test_a_long_turn_ends_with_what_it_took() -> None:
    assert whole_turn(61.4, 340) == "[61 s · 340 out]"
    assert whole_turn(4.9, 340) == ""


def test_a_notice_is_folded_between_words(capsys: pytest.CaptureFixture[str]) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider([])) as system:
        session = Session(system, capsys, lambda: 24)
        session.by(Typist("/signal STOP", "Do come back to us now.", "/exit"))
    assert all(len(line) <= 24 for line in session.notices.splitlines())
    assert "A prompt waits in the" in session.notices
