"""Replays as users make them: over the real store and the real agents, with a scripted model."""

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    BadInput,
    HistoryPruned,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    ToolCall,
    TurnInterrupted,
    Usage,
    attachment,
    tool,
)
from ikigai_actors.behaviour import ExperimentDiffers, Turn, bisect, recorded, regress, replay
from ikigai_actors.behaviour.differences import differences
from ikigai_actors.behaviour.turns import TurnCall, own_messages
from ikigai_actors.providers.base import OnDelta
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.testing import CrashPoint, ProcessCrashed, simulated
from ikigai_actors.tools import Result
from tests.kit.blocking_provider import DEADLINE
from tests.kit.pictures import PNG
from tests.kit.programs import crash_points, each_commit

TEAS = ("Assam", "Ceylon", "Darjeeling")


class TeaShop:
    """A model that looks a price up, sells, and says so; its tools count what they do."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.requests: list[Request] = []

    def answer(self, request: Request) -> Reply | str:
        """Price, then sell as many kilos as the system prompt says, then the answer."""
        self.requests.append(request)
        kilos = 3 if "generous" in (request.system or "") else 2
        last = request.messages[-1]["content"]
        if last[-1]["type"] == "text":
            return Reply("", (ToolCall("price", {"tea": last[-1]["text"]}, f"p{len(request.messages)}"),))
        if str(last[-1]["content"]).startswith("price"):
            tea = str(last[-1]["content"]).split()[1]
            return Reply("", (ToolCall("sell", {"tea": tea, "kilos": kilos}, f"s{len(request.messages)}"),))
        return f"Done: {last[-1]['content']}"

    def open(self, database: str = ":memory:", **how: Any) -> ActorSystem:
        """A system in which it is the model."""
        return ActorSystem.open(database, ScriptedProvider(self.answer), tools=self.tools(), **how)

    def tools(self) -> list[Any]:
        """Two tools that do something."""

        @tool(read_only=True)
        def price(tea: str) -> str:
            self.done.append(f"price {tea}")
            return f"price {tea} 12"

        @tool
        def sell(tea: str, kilos: int) -> str:
            self.done.append(f"sell {tea}")
            return f"sold {kilos} {tea}"

        return [price, sell]


def clerk(system: ActorSystem, teas: tuple[str, ...] = TEAS) -> AgentRef:
    agent = system.root.fork(name="clerk", system="You sell tea.")
    for tea in teas:
        agent.prompt(tea).get(timeout=DEADLINE)
    return agent


@pytest.mark.slow("takes a tenth of a second")
def test_an_unchanged_replay_asks_the_same_and_nothing_is_done() -> None:
    shop = TeaShop()
    with shop.open() as system:
        agent = clerk(system)
        before, then, done = agent.history(all=True), list(shop.requests), list(shop.done)
        result = replay(recorded(agent), parallel=1)
        assert result.differences == []
        assert [(turn.again.calls, turn.again.text) for turn in result.turns] == [
            (turn.recorded.calls, turn.recorded.text) for turn in result.turns
        ]
        assert [request.messages for request in shop.requests[len(then) :]] == [request.messages for request in then]
        assert shop.done == done
        assert agent.history(all=True) == before
        assert result.text() == "3 replayed, none differs."
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_change_shows_where_calls_differ_and_the_turn_ends_there(durable: str) -> None:
    shop = TeaShop()
    with shop.open(durable) as system:
        agent = clerk(system)
        done = list(shop.done)
        ended = replay(recorded(agent), change={"system": "Be generous."})
        turns = recorded(agent)
        assert [replayed.again.how for replayed in ended.turns] == ["diverged"] * 3
        for turn, replayed in zip(turns, ended.turns, strict=True):
            first, last = replayed.differences
            assert (first.position, first.what) == (turn.calls[1].position, "arguments")
            assert (first.recorded["kilos"], first.replayed["kilos"]) == (2, 3)
            assert (last.position, last.what, last.replayed) == (turn.end, "end", "diverged")
        assert shop.done == done
        continued = replay(turns, change={"system": "Be generous."}, missing="tell", run=["price"])
        assert [replayed.again.how for replayed in continued.turns] == ["answered"] * 3
        assert sorted(shop.done) == sorted([*done, *(f"price {tea}" for tea in TEAS)])
        assert "3 differ: 3 arguments, 3 end." in ended.text()
        shown = json.loads(ended.json())
        assert shown["differences"] == {"arguments": 3, "end": 3}
        assert shown["turns"][0]["differences"][0]["position"] == turns[0].calls[1].position


def test_a_page_holds_what_models_wrote_as_text() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(["<script>one", "<script>two"])) as system:
        system.root.prompt("<b>hello").get(timeout=DEADLINE)
        page = replay(recorded(system.root)).html()
        assert "<script>" not in page
        assert "<b>" not in page
        assert "&lt;script&gt;one" in page
        assert "&lt;script&gt;two" in page


def test_a_log_is_gone_on_with_by_its_own_answers() -> None:
    def says(request: Request) -> str:
        said = [part["text"] for message in request.messages for part in message["content"]]
        return f"{request.system}{len(said)}{said[-2] if len(said) > 1 else ''}"

    with ActorSystem.open(":memory:", ScriptedProvider(says)) as system:
        agent = system.root.fork(system="a")
        agent.prompt("x").get(timeout=DEADLINE)
        agent.configure(max_tokens=7)
        agent.prompt("y").get(timeout=DEADLINE)
        other = system.root.fork("z", system="c")
        other.reply(timeout=DEADLINE)
        result = replay(recorded(agent, other), change={"system": "b"}, each="log", samples=2)
        assert [turn.again.text for turn in result.turns] == ["b1", "b1", "b3b1", "b3b1", "b1", "b1"]
        assert result.turns[2].agent.context().settings["max_tokens"] == 7
        forced = replay(recorded(agent), change={"system": "b"})
        assert [turn.again.text for turn in forced.turns] == ["b1", "b3a1"]


def fingerprint(request: Request) -> str:
    """Stands in for a model that says what it was told: its answer depends on all of the request."""
    said = [[part.get("text", part.get("content")) for part in message["content"]] for message in request.messages]
    return hashlib.sha256(json.dumps([request.system, said]).encode()).hexdigest()[:8]


def _undo(agent: AgentRef) -> None:
    agent.prompt("taken back").get(timeout=DEADLINE)
    agent.undo()


def _rewind(agent: AgentRef) -> None:
    agent.mark("here")
    for text in ("gone", "gone, too"):
        agent.prompt(text).get(timeout=DEADLINE)
    agent.rewind("here")


def _undo_several(agent: AgentRef) -> None:
    agent.undo()
    agent.prompt("once more").get(timeout=DEADLINE)
    agent.undo()
    agent.undo()


def _summarise(agent: AgentRef) -> None:
    for text in ("We sell tea. " * 2_000, *["And Assam. " * 2_000] * 3):
        agent.prompt(text).get(timeout=DEADLINE)
    agent.compact(timeout=DEADLINE)


def _uncompact(agent: AgentRef) -> None:
    _summarise(agent)
    agent.prompt("behind the summary").get(timeout=DEADLINE)
    agent.uncompact()


BETWEEN: Mapping[str, Callable[[AgentRef], Any]] = {
    "nothing": lambda agent: None,
    "clear": lambda agent: agent.clear(),
    "undo": _undo,
    "rewind": _rewind,
    "undo of several": _undo_several,
    "summary": _summarise,
    "uncompact": _uncompact,
    "settings": lambda agent: agent.configure(system="Be brief."),
}


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(3, "an event each")
@pytest.mark.parametrize("what", BETWEEN)
def test_a_log_is_replayed_with_what_stood_between_its_turns(what: str) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(fingerprint)) as system:
        agent = system.root.fork(name="ann")
        for text in ("one", "two"):
            agent.prompt(text).get(timeout=DEADLINE)
        BETWEEN[what](agent)
        for text in ("three", "four"):
            agent.prompt(text).get(timeout=DEADLINE)
        turns = recorded(agent)
        assert replay(turns, each="log").differences == []
        changed = replay(turns, each="log", change={"system": "Be kind."})
        assert len(changed.differences) == len(turns)
        assert check(system._store) == []


def test_behind_what_was_taken_back_a_log_goes_on_from_the_replay_of_what_counts() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(fingerprint)) as system:
        agent = system.root.fork(name="ann")
        agent.prompt("one").get(timeout=DEADLINE)
        _undo(agent)
        agent.prompt("two").get(timeout=DEADLINE)
        result = replay(recorded(agent), each="log", change={"system": "Be kind."})
        first, _, two = result.turns
        said = [message.content for message in two.agent.history() if message.kind in ("user", "assistant")]
        assert said == ["one", first.again.text, "two", two.again.text]
        assert first.again.text != first.recorded.text


@pytest.mark.slow("takes a tenth of a second")
def test_a_step_of_a_typed_turn_ends_with_its_first_reply() -> None:
    asked: list[str] = []

    def says(request: Request) -> Reply:
        last = request.messages[-1]["content"][-1]
        asked.append(request.system or "")
        words = last.get("text", "")
        if words.startswith("How many"):
            return Reply("I look.")
        if words.startswith("The result does not fit"):
            return Reply("", (ToolCall("agents", {}, "a"),))
        if request.system == "Guess." or "seven" in str(last.get("content")):
            return Reply("", (ToolCall("give_result", {"result": 7}, f"g{len(asked)}"),))
        return Reply("", (ToolCall("give_result", {"result": "seven"}, f"g{len(asked)}"),))

    with ActorSystem.open(":memory:", ScriptedProvider(says)) as system:
        agent = system.root.fork(name="ann")
        assert agent.prompt("How many?", output=int).get(timeout=DEADLINE).output == 7
        turns, made = recorded(agent), len(asked)
        planned = replay(turns, each="step", dry_run=True).forecast
        result = replay(turns, each="step")
        assert result.differences == []
        assert (planned.requests, len(asked) - made) == (made, made)
        ends = [(turn.recorded.how, turn.again.how, len(turn.again.calls)) for turn in result.turns]
        assert ends == [("open", "open", 0), ("open", "open", 1), ("open", "open", 0), ("answered", "answered", 0)]
        assert [turn.recorded.text for turn in result.turns][::3] == ["I look.", "7"]
        guessed = replay(turns, each="step", change={"system": "Guess."})
        assert [str(difference).split(" ", 1)[1] for difference in guessed.differences] == ["end: open → answered"]
        assert regress(turns, each="step").undecided == 0
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_each_request_of_a_turn_is_replayed_by_itself() -> None:
    shop = TeaShop()
    with shop.open() as system:
        agent = clerk(system, TEAS[:1])
        done, asked = list(shop.done), len(shop.requests)
        result = replay(recorded(agent), each="step", parallel=1, run=["price"], missing="tell")
        assert [(len(replayed.again.calls), replayed.again.error) for replayed in result.turns] == [
            (1, ""),
            (1, ""),
            (0, ""),
        ]
        assert len(shop.requests) == 2 * asked
        assert result.differences == []
        changed = replay(recorded(agent), each="step", change={"system": "Be generous."})
        [turn] = recorded(agent)
        assert [(difference.position, difference.what) for difference in changed.differences] == [
            (turn.calls[1].position, "arguments")
        ]
        assert shop.done == done
        assert check(system._store) == []


@pytest.mark.sample(2, "messages")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize(
    ("kind", "text", "calls", "answer"),
    [
        ("user", "Ceylon", ["price", "sell"][:1], ""),
        ("result", "price Assam 99", ["price", "sell"], "Done: sold 2 Assam"),
        ("reply", "I sell it.", ["sell"], "Done: sold 2 Assam"),
        ("last", "sold 9 Assam", ["sell"], "Done: sold 9 Assam"),
    ],
)
def test_a_message_is_edited_and_the_turn_goes_on_from_there(
    kind: str, text: str, calls: list[str], answer: str
) -> None:
    shop = TeaShop()
    with shop.open() as system:
        agent = clerk(system)
        done = list(shop.done)
        first = recorded(agent)[0]
        results = [message.id for message in agent.history() if message.kind == "tool_result"]
        place = {"user": first.opens, "result": results[0], "reply": first.calls[1].position, "last": results[1]}[kind]
        result = replay(recorded(agent), edit={place: text})
        [turn] = result.turns
        assert [call.name for call in turn.again.calls] == calls
        assert turn.again.text == answer
        assert shop.done == done
        assert check(system._store) == []
        if kind == "result":
            assert shop.requests[-2].messages[-1]["content"][-1]["content"] == text


@pytest.mark.slow("takes a tenth of a second")
def test_the_picture_of_a_result_is_shown_again() -> None:
    requests: list[Request] = []

    def looks(request: Request) -> Reply:
        requests.append(request)
        return Reply("Seen.") if len(requests) % 2 == 0 else Reply("", (ToolCall("draw", {}, "c1"),))

    @tool
    def draw() -> Result:
        return Result("a chart", attached=(attachment(PNG, "chart.png"),))

    with ActorSystem.open(":memory:", ScriptedProvider(looks), tools=[draw]) as system:
        agent = system.root.fork("Draw.")
        agent.reply(timeout=DEADLINE)
        assert replay(recorded(agent)).differences == []
        assert requests[3].messages[-1]["content"] == requests[1].messages[-1]["content"]
        assert "image" in str(requests[3].messages[-1]["content"])
        assert bisect(agent, lambda run: True).probes > 0
        assert requests[4:]
        assert all("image" in str(request.messages[-1]["content"]) for request in requests[5::2])
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_copy_of_calls_that_a_model_has_not_named_is_answered_as_they_were() -> None:
    """Calls without an id have one of their position, and a copy has another position."""

    def asks(request: Request) -> Reply:
        last = request.messages[-1]["content"][-1]
        return Reply(last["content"]) if last["type"] == "tool_result" else Reply(tool_calls=(ToolCall("check_mail"),))

    with ActorSystem.open(":memory:", ScriptedProvider(asks)) as system:
        agent = clerk(system, ("go",))
        [turn] = recorded(agent)
        [replayed] = replay([turn], edit={turn.calls[0].position + 1: "three mails"}).turns
        assert replayed.again.text == "three mails"
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_trial_that_began_with_an_edit_is_replayed_from_there() -> None:
    shop = TeaShop()
    with shop.open() as system:
        agent = clerk(system, TEAS[:1])
        [first] = recorded(agent)
        [edited] = replay([first], edit={first.calls[0].position + 2: "price Assam 99"}).turns
        [turn] = recorded(edited.agent)
        assert [call.name for call in turn.calls] == ["price", "sell"]
        result = replay([turn])
        assert (result.differences, result.turns[0].again.text) == ([], "Done: sold 2 Assam")
        assert shop.requests[-2].messages[-1]["content"][-1]["content"] == "price Assam 99"


def test_a_reply_that_was_cut_off_among_its_calls_is_not_gone_on_from() -> None:
    begun, done = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        begun.set()
        done.wait(DEADLINE)
        return "late"

    with ActorSystem.open(":memory:", ScriptedProvider([Reply("", (ToolCall("slow"),))]), tools=[slow]) as system:
        agent = system.root.fork()
        answer = agent.aio.prompt("Go.")
        begun.wait(DEADLINE)
        agent.signal(Signal.INT)
        done.set()
        with pytest.raises(TurnInterrupted):
            answer.get(timeout=DEADLINE)
        [turn] = recorded(agent, where=lambda turn: True)
        with pytest.raises(BadInput, match="its call of slow has no result"):
            replay([turn], edit={turn.calls[0].position: "I go."})
        assert len(system.agents()) == 2


def test_what_is_behind_an_edit_follows_in_a_log() -> None:
    def says(request: Request) -> str:
        return "+".join(
            part["text"] for message in request.messages for part in message["content"] if message["role"] == "user"
        )

    with ActorSystem.open(":memory:", ScriptedProvider(says)) as system:
        agent = clerk(system)
        second = recorded(agent)[1]
        result = replay(recorded(agent), edit={second.opens: "Oolong"}, each="log")
        assert [turn.again.text for turn in result.turns] == ["Assam+Oolong", "Assam+Oolong+Darjeeling"]


def test_a_replay_that_failed_is_tried_once_more_and_tells_why() -> None:
    answers: list[Any] = ["one", "two", ProviderError("down"), "one", ProviderError("down"), ProviderError("still")]

    def says(request: Request) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    with ActorSystem.open(":memory:", ScriptedProvider(says)) as system:
        agent = clerk(system, TEAS[:2])
        result = replay(recorded(agent), parallel=1)
        assert [(turn.again.how, turn.again.error) for turn in result.turns] == [("answered", ""), ("failed", "still")]
        assert [difference.what for difference in result.differences] == ["end"]
        assert "end: answered → failed: still" in result.text()
        assert answers == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_replay_whose_budget_ends_says_so_in_each_report() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(lambda request: Reply("fine", usage=Usage(0, 30)))) as system:
        poor = replay(recorded(clerk(system)), budget={"tokens": 50}, parallel=1)
        assert 0 < len(poor.turns) < 3
        text = f"{len(poor.turns)} replayed, none differs. It ended before all was replayed: budget."
        assert poor.text() == text
        assert text in poor.html()
        assert json.loads(poor.json())["ended"] == "budget"


@pytest.mark.slow("takes a tenth of a second")
def test_a_replay_goes_on_where_it_was_cut_off_and_other_terms_are_refused() -> None:
    shop = TeaShop()
    with shop.open() as system:
        agent = clerk(system)
        first = replay(recorded(agent), name="mine", budget={"agents": 10})
        asked = len(shop.requests)
        again = replay(recorded(agent), name="mine")
        assert again.resumed
        assert len(shop.requests) == asked
        assert [turn[1:] for turn in again.turns] == [turn[1:] for turn in first.turns]
        with pytest.raises(ExperimentDiffers):
            replay(recorded(agent), name="mine", change={"max_tokens": 9})
        again.end()
        assert [living.name for living in system.agents("running")] == [None, "clerk"]


@pytest.mark.thorough("a host ends at each commit; a bisection does in each run")
@each_commit(7)
def test_a_replay_is_the_same_at_whichever_commit_its_host_ends(step: int) -> None:
    def replayed(crash: CrashPoint | None) -> tuple[bool, list[Any]]:
        shop = TeaShop()
        with simulated() as world:
            clerk(world.open(ScriptedProvider(shop.answer), tools=shop.tools()), TEAS[:1])
            done = list(shop.done)
            crashed = False
            if crash is not None:
                world.crash_at(crash)
            while True:
                with suppress(ProcessCrashed):
                    result = replay(recorded(world.system.agent("clerk")), samples=2, parallel=2)
                    assert check(world.system._store) == []
                    assert shop.done == done
                    return crashed, [(turn.again.calls, turn.again.text) for turn in result.turns]
                world.recover()
                crashed = True

    _, whole = replayed(None)
    for point in crash_points(step):
        crashed, same = replayed(point)
        assert same == whole
        if not crashed:
            assert point.commit > 8
            return


Wrong = Callable[[Turn], Mapping[str, Any]]


MISTAKES: list[tuple[Wrong, str]] = [
    (lambda turn: {"turns": []}, "one or more"),
    (lambda turn: {"turns": "support.jsonl"}, "a Turn"),
    (lambda turn: {"change": {"colour": "red"}}, "no setting 'colour'"),
    (lambda turn: {"change": {"model": "nowhere:big"}}, "not registered"),
    (lambda turn: {"change": {"tools": ["fly"]}}, "no tool 'fly'"),
    (lambda turn: {"change": {"effects": None}}, "has no effects"),
    (lambda turn: {"change": "system"}, "a dict of settings"),
    (lambda turn: {"run": ["sell"]}, "read_only"),
    (lambda turn: {"run": ["fly"]}, "no tool 'fly'"),
    (lambda turn: {"each": "reply"}, "one of turn, log, step"),
    (lambda turn: {"missing": "run"}, "one of stop, tell"),
    (lambda turn: {"samples": 0}, "samples"),
    (lambda turn: {"parallel": 0}, "parallel"),
    (lambda turn: {"edit": {turn.end: "Never."}}, "nothing goes on from it"),
    (lambda turn: {"edit": {9_999: "x"}}, "in none of the turns"),
    (lambda turn: {"edit": {turn.calls[0].position + 1: "x"}}, "of kind tool_call"),
    (lambda turn: {"edit": {turn.opens: 5}}, "text"),
    (lambda turn: {"edit": {turn.opens: "\0"}}, "The edit of 3 holds"),
    (lambda turn: {"edit": {turn.opens: "x"}, "each": "step"}, "replays every request"),
    (lambda turn: {"edit": {turn.calls[0].position: "a", turn.calls[1].position: "b"}}, "several steps"),
    (lambda turn: {"edit": {turn.opens: "a", turn.calls[1].position: "b"}}, "edit nothing else"),
    (lambda turn: {"under": "root"}, "a handle"),
    (lambda turn: {"turns": [replace(turn, end=turn.opens)], "each": "step"}, "no step"),
]


def test_a_wrong_argument_is_named_and_nothing_is_made() -> None:
    with TeaShop().open() as system:
        turns = recorded(clerk(system, TEAS[:1]))
        for wrong, message in MISTAKES:
            how: dict[str, Any] = {"turns": turns, **wrong(turns[0])}
            with pytest.raises(BadInput, match=message):
                replay(**how)
            assert len(system.agents()) == 2, message


@pytest.mark.slow("takes a tenth of a second")
def test_turns_of_a_log_that_was_deleted_meanwhile_are_refused() -> None:
    with TeaShop().open() as system:
        agent = clerk(system, TEAS[:1])
        turns = recorded(agent)
        agent.kill()
        result = replay(turns)
        assert result.differences == []
        result.end()
        prune_logs(system._store, 2**50, 1)
        for each in ("turn", "step"):
            with pytest.raises(HistoryPruned):
                replay(turns, each=each, name="late")


def turn_of(
    system: ActorSystem, *calls: tuple[int, str, dict[str, Any]], text: str = "", how: str = "answered"
) -> Turn:
    made = tuple(TurnCall(position, name, arguments) for position, name, arguments in calls)
    return Turn(system.root, 1, 9, "?", made, text, how)


@pytest.mark.parametrize(
    ("then", "now", "how", "expected"),
    [
        ([(2, "a", {}), (2, "b", {})], [(2, "b", {}), (2, "a", {})], "answered", []),
        ([(2, "a", {}), (4, "b", {})], [(2, "b", {}), (4, "a", {})], "answered", [(2, "extra"), (4, "missing")]),
        ([(2, "a", {"x": 1})], [(2, "a", {"x": 2})], "answered", [(2, "arguments")]),
        ([(2, "a", {}), (4, "b", {})], [(2, "a", {}), (4, "c", {})], "answered", [(4, "tool")]),
        ([(2, "a", {}), (4, "b", {})], [(2, "a", {})], "answered", [(4, "missing")]),
        ([(2, "a", {}), (4, "b", {})], [(2, "c", {})], "diverged", [(2, "tool"), (9, "end")]),
        ([(4, "b", {})], [(2, "a", {}), (4, "b", {})], "answered", [(4, "extra")]),
        ([], [(2, "a", {})], "diverged", [(9, "extra"), (9, "end")]),
    ],
)
def test_calls_are_aligned(then: list[Any], now: list[Any], how: str, expected: list[tuple[int, str]]) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider([])) as system:
        deviations = differences(turn_of(system, *then), turn_of(system, *now, how=how))
        assert [(difference.position, difference.what) for difference in deviations] == expected


WORDS = ("By train.", "By night.")


class Traveller:
    """A model that repeats what it hears; while there are words, its agent is told one in each request."""

    name, counts = "traveller", False

    def __init__(self) -> None:
        self.words = [*WORDS]

    async def respond(self, request: Request, _: OnDelta) -> Reply:
        """Repeat the last text."""
        if self.words:
            await self.agent.steer(self.words.pop(0)).kept
        if "Be brief." in (request.system or ""):
            raise ProviderError("It is down.")
        return Reply(f"I hear: {request.messages[-1]['content'][-1]['text']}")

    async def close(self) -> None:
        """Nothing is held."""

    def open(self) -> ActorSystem:
        """A system in which its first turn is over."""
        system = ActorSystem.open(":memory:", self)
        self.agent = system.root.fork(name="traveller")
        self.agent.prompt("Go.").get(timeout=DEADLINE)
        return system


SAID = ["Go.", "I hear: Go.", "By train.", "I hear: By train.", "By night.", "I hear: By night."]


def said(agent: AgentRef) -> list[str]:
    """The contents of the messages of an agent's own turns."""
    return [
        message.content for message in own_messages(agent) if message.kind in ("user", "steer", "assistant", "error")
    ]


def test_a_replay_is_given_the_words_of_its_turn_after_the_same_replies() -> None:
    model = Traveller()
    with model.open() as system:
        turns = recorded(model.agent)
        assert [(word.text, len(word.replies)) for word in turns[0].words] == [("By train.", 1), ("By night.", 2)]
        result = replay(turns)
        assert (result.differences, said(result.turns[0].agent)) == ([], SAID)
        again = replay(recorded(result.turns[0].agent))
        assert (again.differences, said(again.turns[0].agent)) == ([], SAID)
        steps = replay(turns, each="step")
        assert [said(turn.agent) for turn in steps.turns] == [[text] for text in SAID[1::2]]
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_probes_of_a_bisection_are_given_the_words_of_each_turn() -> None:
    model = Traveller()
    with model.open() as system:
        model.words = [*WORDS]
        model.agent.prompt("Go.").get(timeout=DEADLINE)
        result = bisect(model.agent, lambda run: False, most=6)
        probes = [said(system.agent(trial.agent)) for trial in result.experiment.book.trials.values()]
        assert {len(probe) for probe in probes} == {len(SAID), 2 * len(SAID)}
        assert all(probe in (SAID, SAID + SAID) for probe in probes)
        assert check(system._store) == []


def test_a_trial_that_ends_before_a_word_could_be_given_says_so() -> None:
    model = Traveller()
    with model.open():
        turns = recorded(model.agent)
        positions = [word.position for word in turns[0].words]
        failed = replay(turns, change={"system": "Be brief."})
        assert [
            (difference.position, difference.replayed) for difference in failed.differences if difference.what == "word"
        ] == [
            (positions[0], "word 1 not given"),
            (positions[1], "word 2 not given"),
        ]
        assert f"{positions[0]} word: By train. → word 1 not given" in failed.text()
        judged = regress(turns, change={"system": "Be brief."}, baseline=False, retries=0)
        assert [*judged.reasons] == ["It is down.; word 1 not given; word 2 not given"]
        limited = replay(turns, change={"max_steps": 2})
        assert [difference.replayed for difference in limited.differences if difference.what == "word"] == [
            "word 2 not given"
        ]
        assert said(limited.turns[0].agent) == SAID[:4]


def test_a_word_enters_after_the_last_reply_of_a_replay_that_is_shorter() -> None:
    model = Traveller()
    with model.open():
        turns = recorded(model.agent)
        shorter = replace(turns[0].words[0], replies=(1, 2, 3)), replace(turns[0].words[1], replies=(1, 2, 3))
        [replayed] = replay([replace(turns[0], opens=turns[0].opens, words=shorter)]).turns
        assert said(replayed.agent) == ["Go.", "I hear: Go.", "By train.", "By night.", "I hear: By night."]
