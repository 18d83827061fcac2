"""Births that go on from any boundary: without a prompt, and with copies of what was said elsewhere."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    BadInput,
    Kind,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    ToolCall,
    tool,
)
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.behaviour import GO, BestOf, TrialRun, search
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing import CrashPoint, ProcessCrashed, simulated
from tests.kit.blocking_provider import DEADLINE
from tests.kit.programs import each_commit

EFFECTS = {"effects": {"run": [], "missing": "stop"}}
Copies = tuple[tuple[str, str, Mapping[str, Any]], ...]


class Shop:
    """A model that asks for the price of a tea, and then tells it; it keeps the requests, the tool its calls."""

    def __init__(self) -> None:
        self.requests: list[list[Any]] = []
        self.calls: list[str] = []

    def answer(self, request: Request) -> Reply:
        """Call the tool once, then say what it said."""
        self.requests.append([dict(message) for message in request.messages])
        last = request.messages[-1]["content"][-1]
        if last["type"] == "text":
            return Reply(tool_calls=(ToolCall("price", {"tea": last["text"]}, f"c{len(self.requests)}"),))
        return Reply(f"It costs {last['content']}.")

    def open(self) -> ActorSystem:
        """A system in which it is the model."""

        @tool
        def price(tea: str) -> str:
            self.calls.append(tea)
            return "12"

        return ActorSystem.open(":memory:", ScriptedProvider(self.answer), tools=[price])


def born(maker: AgentRef, of: AgentRef, at: int, *, begin: Copies = (), prompt: str | None = None) -> AgentRef:
    """A trial that goes on from a position."""
    child = new_agent_uuid(maker.system._random_bytes)
    written: Future[int] = Future(maker.uuid)
    trial = on.TrialBirth(child, of.uuid, at, prompt, {}, EFFECTS, {}, prompt is None, begin)
    maker.system._tell(maker.uuid, on.ForkTrials({}, (trial,), written))
    written.get(timeout=DEADLINE)
    return maker.system.handle(child)


def place_of(agent: AgentRef, kind: Kind) -> int:
    return next(message.id for message in agent.history() if message.kind == kind)


def test_a_trial_lives_in_the_shard_of_its_experiment_whosever_history_it_goes_on_from() -> None:
    with Shop().open() as system:
        lab = system.root.fork()
        others = (system.root.fork() for _ in count())
        worker = next(other for other in others if other.record.shard != lab.record.shard)
        result = search(worker, lambda run: 1.0, plan=BestOf(2), options=["Assam"], under=lab)
        places = [result.experiment.agent, *map(result.experiment.agent_of, (1, 2))]
        assert {place.record.shard for place in places} == {lab.record.shard}


@pytest.mark.parametrize("kind", [Kind.USER, Kind.TOOL_RESULT])
def test_a_trial_without_a_prompt_sends_the_request_that_was_recorded_there(kind: Kind) -> None:
    shop = Shop()
    with shop.open() as system:
        clerk = system.root.fork("Assam", name="clerk")
        clerk.reply(timeout=DEADLINE)
        before = clerk.history(all=True)
        place = place_of(clerk, kind)
        recorded = shop.requests[kind == Kind.TOOL_RESULT]
        trial = born(system.root, clerk, place)
        if kind == Kind.TOOL_RESULT:
            assert trial.reply(timeout=DEADLINE).text == "It costs 12."
        trial.wait([trial])
        assert shop.requests[2] == recorded
        assert shop.calls == ["Assam"]
        assert clerk.history(all=True) == before
        assert check(system._store) == []


def test_a_trial_goes_on_with_a_call_that_was_changed_and_its_turn_begins_with_its_birth() -> None:
    shop = Shop()
    with shop.open() as system:
        clerk = system.root.fork("Assam", name="clerk")
        clerk.reply(timeout=DEADLINE)
        call = {"type": "tool_use", "id": "changed", "name": "price", "input": {"tea": "Ceylon"}}
        copies: Copies = (
            (Kind.ASSISTANT, "", {"blocks": [call], "from": 4}),
            (Kind.TOOL_RESULT, "15", {"tool_use_id": "changed", "name": "price", "from": 6}),
        )
        trial = born(system.root, clerk, place_of(clerk, Kind.USER), begin=copies)
        assert trial.reply(timeout=DEADLINE).text == "It costs 15."
        first = trial.history(all=True)[-5]
        assert (first.kind, first.data["go"]) == (Kind.FORK, True)
        asked = born(system.root, clerk, place_of(clerk, Kind.USER), begin=copies, prompt="and now?")
        own = [message.kind for message in asked.history() if message.agent_uuid == asked.uuid]
        assert own[:5] == ["fork", "configure", "assistant", "tool_result", "user"]
        assert check(system._store) == []


@pytest.mark.sample(2, "places")
@pytest.mark.parametrize(
    ("begin", "message"),
    [
        ((("mark", "", {}),), "expected user, steer, assistant and tool_result"),
        (((Kind.USER, "?", {"attached": 5}),), "attached"),
        (((Kind.TOOL_RESULT, "7", {"tool_use_id": "c"}),), "answers no call"),
        (((Kind.ASSISTANT, "", {"tool_calls": [{"name": "a", "id": "c"}]}),), "call c has no result"),
        (((Kind.ASSISTANT, "", {"tool_calls": [{"name": "a", "id": "c"}]}), (Kind.USER, "?", {})), "before what"),
        (((Kind.ASSISTANT, "done", {}),), "nothing is left"),
    ],
)
def test_a_trial_that_would_begin_within_a_step_is_refused_and_nothing_is_written(begin: Copies, message: str) -> None:
    with Shop().open() as system:
        head = len(system.root.history(all=True))
        with pytest.raises(BadInput, match=message):
            born(system.root, system.root, 0, begin=begin)
        assert (len(system.agents()), len(system.root.history(all=True))) == (1, head)


def test_a_trial_that_failed_goes_on_with_the_turn_that_its_birth_has_opened() -> None:
    failures = iter([ProviderError("once"), ProviderError("twice")])
    with ActorSystem.open(":memory:", ScriptedProvider(lambda request: next(failures, "answered"))) as system:
        agent = system.root.fork()
        with pytest.raises(ProviderError):
            agent.prompt("hello").get(timeout=DEADLINE)
        copy = (Kind.USER, "and?", {"from": 1})
        trial = born(system.root, agent, place_of(agent, Kind.USER), begin=(copy,))
        with pytest.raises(ProviderError, match="twice"):
            trial.reply(timeout=DEADLINE)
        assert trial.resume()
        assert trial.reply(timeout=DEADLINE).text == "answered"
        assert [message.kind for message in trial.history()[-5:]] == ["fork", "configure", "user", "error", "assistant"]
        assert check(system._store) == []


def test_a_turn_that_must_give_a_value_is_gone_on_with_as_such() -> None:
    def numbers(request: Request) -> Reply:
        return Reply(tool_calls=(ToolCall("give_result", {"result": 7}),)) if request.output else Reply("no value")

    with ActorSystem.open(":memory:", ScriptedProvider(numbers)) as system:
        agent = system.root.fork()
        agent.prompt("How many?", output=int).get(timeout=DEADLINE)
        runs: list[TrialRun] = []
        search(agent, runs.append, plan=BestOf(2), options=[GO], at=place_of(agent, Kind.USER))
        assert [run.reply.output for run in runs if run.reply is not None] == [7, 7]
        assert check(system._store) == []


def test_go_is_refused_where_nothing_waits_for_an_answer() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(lambda request: "fine")) as system:
        agent = system.root.fork("hello")
        agent.reply(timeout=DEADLINE)
        for whose in (agent, system.root):
            with pytest.raises(BadInput, match="nothing waits"):
                search(whose, lambda run: 1, plan=BestOf(1), options=[GO], name=f"of-{whose.uuid}")


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "a host ends at each commit")
@pytest.mark.parametrize("committed", [False, True])
@each_commit(2)
def test_a_trial_without_a_prompt_is_answered_once_at_whichever_commit_its_host_ends(
    step: int, committed: bool
) -> None:
    def answered(crash: CrashPoint | None) -> bool:
        with simulated() as world:
            agent = world.open(ScriptedProvider(lambda request: "fine")).root.fork("hello", name="agent")
            agent.reply()
            place = place_of(agent, Kind.USER)
            if crash is not None:
                world.crash_at(crash)
            try:
                trial = born(agent.system.root, agent, place)
                assert trial.reply().text == "fine"
                crashed = False
            except ProcessCrashed:
                world.recover()
                crashed = True
            trials = [
                each
                for each in world.system.agents()
                if each.supervisor_uuid == world.system.root.uuid and not each.name
            ]
            for record in trials:
                trial = world.system.handle(record.uuid)
                assert trial.state in (Phase.INTERRUPTED, Phase.IDLE)
                trial.resume()
                assert trial.reply().text == "fine"
            assert check(world.system._store) == []
            return crashed

    for commit in count(1, step):
        if not answered(CrashPoint(commit, committed)):
            assert commit > 2
            return
