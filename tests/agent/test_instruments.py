"""Instruments: what an agent does begins and ends once for each of them, whatever becomes of it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    BadInput,
    FunctionProvider,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    ToolCall,
    TurnInterrupted,
    tool,
)
from ikigai_actors.errors import IkigaiError
from ikigai_actors.events import Instrument
from ikigai_actors.providers.base import Spent
from ikigai_actors.types import Tally
from tests.kit.blocking_provider import DEADLINE, Hanging


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there"


class Listening(Instrument):
    """Keeps what it hears, in order."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def request_begins(self, agent: Tally, request: Request) -> None:
        self.heard.append(("request", len(request.messages)))

    def request_ends(self, agent: Tally, answer: Reply | Exception | None, spent: Spent | None) -> None:
        self.heard.append(("answer", answer.text if isinstance(answer, Reply) else answer))

    def tool_begins(self, agent: Tally, tool: str, call: str, arguments: Mapping[str, Any]) -> None:
        self.heard.append((tool, dict(arguments)))

    def tool_ends(self, agent: Tally, tool: str, call: str, result: str | None) -> None:
        self.heard.append((tool, result))

    def wait_begins(self, agent: Tally, call: str) -> None:
        self.heard.append(("wait", True))

    def wait_ends(self, agent: Tally, call: str) -> None:
        self.heard.append(("wait", False))

    def restart_begins(self, agent: Tally, reason: str) -> None:
        self.heard.append(("restart", reason))

    def restart_ends(self, agent: Tally) -> None:
        self.heard.append(("restarted", agent.uuid))


class Commits(Instrument):
    """Counts commits, and the states of agents."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.states: list[str] = []

    def commit_begins(self, agent: Tally) -> None:
        self.counts["begun"] += 1

    def commit_ends(self, agent: Tally, error: IkigaiError | None) -> None:
        self.counts["committed" if error is None else "failed"] += 1

    def state_changes(self, agent: Tally, state: str, turn: int) -> None:
        self.states.append(state)


def test_a_turn_is_heard_from_its_requests_to_its_tools_and_waits() -> None:
    replies = iter([
        Reply("I look.", (ToolCall("look", {"at": "moon"}),)),
        Reply("", (ToolCall("wait", {"timeout": 0}),)),
        Reply("Seen."),
    ])  # fmt: skip
    listening, commits = Listening(), Commits()
    provider = ScriptedProvider(lambda request: next(replies))
    with ActorSystem.open(":memory:", provider=provider, tools=[look], instruments=[listening, commits]) as system:
        assert system.root.prompt("look").get(timeout=DEADLINE).text == "Seen."
    assert listening.heard == [
        ("request", 1), ("answer", "I look."),
        ("look", {"at": "moon"}), ("look", "moon is there"),
        ("request", 3), ("answer", ""),
        ("wait", True), ("wait", False),
        ("request", 5), ("answer", "Seen."),
    ]  # fmt: skip
    assert commits.counts["begun"] == commits.counts["committed"] > 0
    assert commits.states[0] == "waiting for the model"
    assert commits.states[-1] == "idle"


def test_a_request_that_is_cut_off_ends_without_an_answer() -> None:
    listening, provider = Listening(), Hanging("I")
    with ActorSystem.open(":memory:", provider=provider, instruments=[listening]) as system:
        prompted = system.root.prompt("go")
        provider.wait_until_asked()
        system.root.signal(Signal.INT, timeout=DEADLINE)
        with pytest.raises(TurnInterrupted):
            prompted.get(timeout=DEADLINE)
        assert listening.heard == [("request", 1), ("answer", None)]


def test_a_birth_with_a_prompt_is_no_restart() -> None:
    listening = Listening()
    with ActorSystem.open(":memory:", "offline", instruments=[listening]) as system:
        assert system.root.fork("go").reply(timeout=DEADLINE).text
    assert not [entry for entry in listening.heard if entry[0].startswith("restart")]


def test_an_agent_that_fails_is_heard_until_it_goes_on() -> None:
    answers = iter((LookupError("a defect of its own"), None))
    listening = Listening()

    def answer(request: Request) -> str:
        if (defect := next(answers)) is not None:
            raise defect
        return "better"

    with ActorSystem.open(":memory:", provider=FunctionProvider(answer), instruments=[listening]) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "better"
        uuid = system.root.uuid
    assert [entry for entry in listening.heard if entry[0].startswith("restart")] == [
        ("restart", "LookupError: a defect of its own"), ("restarted", uuid),
    ]  # fmt: skip


def test_an_instrument_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Instrument):
        def request_begins(self, agent: Tally, request: Request) -> None:
            raise LookupError("an instrument's defect")

    listening = Listening()
    with ActorSystem.open(":memory:", provider=ScriptedProvider(["ok"]), instruments=[Failing(), listening]) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
    assert "an instrument's defect" in caplog.text
    assert listening.heard[0] == ("request", 1)


@pytest.mark.parametrize("instruments", [3, ["slow"], Instrument])
def test_what_is_no_instrument_is_refused(instruments: Any) -> None:
    with pytest.raises(BadInput, match="instruments"):
        ActorSystem.open(":memory:", instruments=instruments)
