"""Turns as they are read from logs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    BadInput,
    HistoryPruned,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    ToolCall,
    Usage,
    tool,
)
from ikigai_actors.behaviour import BestOf, Turn, recorded, replay, search
from ikigai_actors.behaviour.files import turns_of_file
from ikigai_actors.records.log.pruning import prune_logs
from supervisors.signals import Signal
from tests.kit.blocking_provider import DEADLINE


@tool
def price(tea: str) -> str:
    """Tell the price of a tea."""
    if tea == "none":
        raise ValueError("sold out")
    return f"{tea}: 12"


def shop(answers: Iterator[Any]) -> ActorSystem:
    return ActorSystem.open(":memory:", ScriptedProvider(lambda request: next(answers)), tools=[price])


def asks(*teas: str) -> Reply:
    return Reply("I look.", tuple(ToolCall("price", {"tea": tea}, f"c{tea}") for tea in teas))


def test_what_a_turn_has_cost_is_counted_once_and_by_request() -> None:
    answers = [
        Reply("", asks("Assam").tool_calls, usage=Usage(10, 2)),
        "It is 12.",
        Reply(output=12, usage=Usage(20, 3)),
    ]
    with shop(iter(answers)) as system:
        system.root.prompt("How much?").get(timeout=DEADLINE)
        system.root.prompt("And as a number?", output=int).get(timeout=DEADLINE)
        first, typed = recorded(system.root)
        assert [(request.kind, request.model, request.usage) for request in first.requests] == [
            ("assistant", "scripted:", Usage(10, 2)),
            ("assistant", "scripted:", None),
        ]
        assert (first.tokens, typed.tokens, len(typed.requests)) == (12, 23, 1)


def test_a_turn_has_its_prompt_its_calls_with_results_and_its_answer() -> None:
    with shop(iter([asks("Assam", "none"), asks("Assam"), "It is 12.", "Bye."])) as system:
        clerk = system.root.fork(name="clerk", system="You sell tea.")
        clerk.prompt("How much?").get(timeout=DEADLINE)
        clerk.prompt("Thanks.").get(timeout=DEADLINE)
        clerk.clear()
        first, second = recorded(clerk)
        assert (first.agent, first.prompt, first.text, first.how) == (clerk, "How much?", "It is 12.", "answered")
        log = {message.id: message.kind for message in clerk.history(all=True)}
        assert (log[first.opens], log[first.end]) == ("user", "assistant")
        assert [(call.name, call.input["tea"], log[call.position]) for call in first.calls] == [
            ("price", "Assam", "assistant"),
            ("price", "none", "assistant"),
            ("price", "Assam", "assistant"),
        ]
        assert [call.is_error for call in first.calls] == [False, True, False]
        assert first.calls[0].result == "Assam: 12"
        assert first.calls[0] == first.calls[2]
        assert first.calls[0].position < first.calls[2].position
        assert (second.prompt, second.calls, second.text) == ("Thanks.", (), "Bye.")


def test_turns_that_failed_are_left_out_and_counted_unless_they_are_asked_for() -> None:
    def answers() -> Iterator[Any]:
        yield "fine"
        raise ProviderError("no answer today")

    with shop(answers()) as system:
        clerk = system.root.fork()
        clerk.prompt("one").get(timeout=DEADLINE)
        with pytest.raises(ProviderError):
            clerk.prompt("two").get(timeout=DEADLINE)
        assert [turn.prompt for turn in recorded(clerk)] == ["one"]
        assert recorded(clerk).left_out == {"failed": 1}
        [failed] = recorded(clerk, where=lambda turn: turn.how == "failed")
        assert (failed.prompt, failed.text) == ("two", "")
        assert "no answer today" in failed.error


@pytest.mark.parametrize("text", ["do it", None])
def test_a_turn_of_a_child_that_a_call_has_forked_has_the_prompt_of_that_call_and_is_replayed(
    text: str | None,
) -> None:
    def forks(request: Request) -> Reply | str:
        last = request.messages[-1]["content"][-1]
        if last.get("text") == "divide":
            prompt = {} if text is None else {"prompt": text}
            return Reply(tool_calls=(ToolCall("fork", {**prompt, "name": "part"}), ToolCall("check_mail")))
        return "done"

    with ActorSystem.open(":memory:", ScriptedProvider(forks)) as system:
        system.root.prompt("divide").get(timeout=DEADLINE)
        part = system.agent("part")
        part.reply(timeout=DEADLINE)
        [turn] = recorded(part)
        assert (turn.prompt, turn.text) == (text, "done")
        assert [call.name for call in recorded(system.root)[0].calls] == ["fork", "check_mail"]
        for each in ("turn", "log", "step"):
            assert replay([turn], each=each).differences == []
        [trial] = replay([turn], each="step").turns  # its turn is opened by its birth, too
        assert replay(recorded(trial.agent)).differences == []
        with pytest.raises(BadInput, match="came with the birth of the agent"):
            replay([turn], edit={turn.opens: "do that"})


def test_the_value_of_a_typed_turn_is_its_text_and_no_call() -> None:
    with shop(iter([Reply(tool_calls=(ToolCall("give_result", {"result": 7}),))])) as system:
        system.root.prompt("How many?", output=int).get(timeout=DEADLINE)
        [turn] = recorded(system.root)
        assert (turn.text, turn.calls, turn.how) == ("7", (), "answered")


def test_the_turns_of_a_log_that_was_deleted_and_wrong_arguments_are_refused() -> None:
    with shop(iter(["x"])) as system:
        lost = system.root.fork("x")
        lost.reply(timeout=DEADLINE)
        lost.kill()
        assert len(recorded(lost)) == 1
        prune_logs(system._store, 2**50, 1)
        with pytest.raises(HistoryPruned):
            recorded(lost)
        wrong: list[tuple[Any, Any]] = [((), None), (("clerk",), None), ((system.root,), "answered")]
        for agents, where in wrong:
            with pytest.raises(BadInput):
                recorded(*agents, where=where)


def test_turns_are_values() -> None:
    with shop(iter(["x", "y"])) as system:
        system.root.prompt("x").get(timeout=DEADLINE)
        [turn] = recorded(system.root)
        assert isinstance(turn, Turn)
        assert [turn] == recorded(system.root)


def test_the_turns_of_a_file_are_without_those_of_trials_that_were_exported_with_their_agent(tmp_path: Path) -> None:
    with shop(iter(["fine"] * 9)) as system:
        clerk = system.root.fork(name="clerk")
        clerk.prompt("one").get(timeout=DEADLINE)
        result = search(clerk, lambda run: 1, plan=BestOf(2), options=["two"])
        result.experiment.agent_of(1).prompt("three").get(timeout=DEADLINE)
        result.keep("winner").prompt("four").get(timeout=DEADLINE)
        system.export(clerk, tmp_path / "clerk.jsonl")
    with turns_of_file(tmp_path / "clerk.jsonl", provider="offline") as turns:
        assert sorted(str(turn.prompt) for turn in turns) == ["four", "one"]


@pytest.mark.slow("takes a tenth of a second")
def test_nothing_runs_of_the_agents_of_a_file_whatever_waits_for_them(tmp_path: Path) -> None:
    """A prompt that nobody has answered, a turn that was cut off, and mail: none of them begins anything."""
    asked: list[str] = []
    sold: list[int] = []

    @tool
    def sell(kilos: int) -> str:
        sold.append(kilos)
        return "sold"

    def answer(request: Request) -> Reply:
        asked.append(request.agent)
        last = request.messages[-1]["content"][-1]
        if last.get("text") == "cut off":
            raise ProviderError("lost")
        return Reply("", (ToolCall("sell", {"kilos": 2}),)) if last["type"] == "text" else Reply("done")

    parts: dict[str, Any] = {"provider": ScriptedProvider(answer), "tools": [sell]}
    database = tmp_path / "shop.db"
    with ActorSystem.open(database, **parts) as system:
        clerk = system.root.fork(name="clerk")
        clerk.prompt("one").get(timeout=DEADLINE)
        with pytest.raises(ProviderError):
            clerk.fork("cut off", name="cut", restart="permanent").reply(timeout=DEADLINE)
    with ActorSystem.attach(database) as nobody:
        for name in ("clerk", "cut"):
            nobody.agent(name).aio.prompt("two")
            nobody.send(name, "mail")
        nobody.export("clerk", tmp_path / "clerk.jsonl")
    asked.clear()
    sold.clear()
    with turns_of_file(tmp_path / "clerk.jsonl", **parts, resume=True) as turns:
        root = turns[0].agent.system.root
        agents = [root.system.agent("clerk"), root.system.agent("cut")]
        assert set(root.wait(agents, timeout=DEADLINE).values()) == {"stopped"}
        assert replay(turns).differences == []
        assert len(asked) == 2  # of the replay
        assert not {agent.uuid for agent in agents} & {*asked}
        assert sold == []
        agents[0].signal(Signal.CONT)
        assert root.wait(agents[:1], timeout=DEADLINE) == {agents[0]: "idle"}
        assert sold == [2]
