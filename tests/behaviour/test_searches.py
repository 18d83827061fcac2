"""Searches as users make them: over the real store and the real agents, with a scripted model."""

import json
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    BadInput,
    HistoryPruned,
    NameTaken,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    ToolCall,
    Usage,
    tool,
)
from ikigai_actors.behaviour import (
    GO,
    MCTS,
    Beam,
    BestOf,
    ExperimentDiffers,
    Found,
    SearchNode,
    TrialRun,
    Verdict,
    search,
)
from ikigai_actors.errors import NotABoundary
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.testing import CrashPoint, ProcessCrashed, simulated
from tests.kit.blocking_provider import DEADLINE
from tests.kit.programs import crash_points, each_commit


def echo(request: Request) -> str:
    """All prompts of the conversation, one behind the other."""
    said = [message["content"] for message in request.messages if message["role"] == "user"]
    return "".join(part["text"] for parts in said for part in parts)


def closeness(run: TrialRun) -> Verdict:
    """How much of the word is spelt."""
    word, goal = run.text.removeprefix("."), "abba"
    right = sum(a == b for a, b in zip(word, goal, strict=False))
    return Verdict(right / len(goal), over=len(word) >= len(goal))


def opened(database: str, **how: Any) -> ActorSystem:
    return ActorSystem.open(database, ScriptedProvider(echo), **how)


async def later(_: object) -> list[str]:
    """Stands for what must be no async function."""
    return ["a"]


def player(system: ActorSystem) -> AgentRef:
    agent = system.root.fork(".", name="player")
    agent.reply(timeout=DEADLINE)
    return agent


def settings(agent: AgentRef) -> dict[str, Any]:
    log = agent.system._log_cache.load(agent.uuid)
    return dict(log.view(log.head).settings)


def shape(result: Found) -> list[tuple[object, ...]]:
    return [tuple(trial) for trial in result.trials]


@pytest.mark.slow("takes a tenth of a second")
def test_a_search_finds_what_spells_the_word_and_the_agent_gets_no_message(database: str) -> None:
    with opened(database) as system:
        agent = player(system)
        before = agent.history(all=True)
        result = search(agent, closeness, plan=MCTS(60, enough=1.0), options=["a", "b"], parallel=4, seed=2)
        assert result.score == 1.0
        assert result.agent is not None
        assert result.agent.reply().text == ".abba"
        assert [result.trials[number - 1].prompt for number in result.path] == ["a", "b", "b", "a"]
        assert agent.history(all=True) == before
        assert not result.resumed
        assert check(system._store) == []
        winner = result.keep("winner")
        assert winner.prompt("!").get(timeout=DEADLINE).text == ".abba!"
        assert winner.record.supervisor_uuid == system.root.uuid
        result.end()
        result.end()  # nothing is left to be ended
        assert [living.name for living in system.agents("running")] == [None, "player", "winner"]
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "a place each")
@pytest.mark.parametrize("plan", [BestOf(5), Beam(2, 3), MCTS(12)])
def test_a_search_that_was_cut_off_anywhere_ends_with_the_same_tree(tmp_path: Path, plan: Any) -> None:
    """Its judge ends the program, again and again; what was judged is not judged again."""
    how: dict[str, Any] = {"plan": plan, "options": ["a", "b"], "parallel": 3, "seed": 1}
    with opened(":memory:") as system:
        whole = shape(search(player(system), closeness, **how))
    judged: list[int] = []
    database = str(tmp_path / "cut.db")
    with opened(database) as system:
        player(system)
    for attempt in count(2):
        left = iter(range(attempt))

        def dies(run: TrialRun, left: Any = left) -> Verdict:
            if next(left, None) is None:
                raise KeyboardInterrupt
            judged.append(run.trial.number)
            return closeness(run)

        with suppress(KeyboardInterrupt), opened(database) as system:
            result = search(system.agent("player"), dies, **how)
            assert shape(result) == whole
            assert result.resumed
            assert check(system._store) == []
            break
    assert sorted(set(judged)) == list(range(1, len(whole) + 1))
    assert attempt > 2


@pytest.mark.slow("takes a tenth of a second")
def test_a_search_from_agent_0_which_gets_the_experiment_as_a_child_goes_on_as_well() -> None:
    with opened(":memory:") as system:
        system.root.prompt(".").get(timeout=DEADLINE)
        system.root.note({"seen": True})
        how: dict[str, Any] = {"plan": BestOf(2), "options": ["a"]}
        first = search(system.root, closeness, **how)
        again = search(system.root, closeness, **how)
        named = search(system.root, closeness, **how, name="mine")
        assert again.resumed
        assert (again.experiment.agent, shape(again)) == (first.experiment.agent, shape(named))
        assert search(system.root, closeness, **how, name="mine").resumed
        system.root.prompt("b").get(timeout=DEADLINE)
        assert not search(system.root, closeness, **how).resumed


def test_nothing_runs_outside_but_a_tool_that_is_named_and_only_reads() -> None:
    ran: list[str] = []

    @tool
    def buy(tea: str) -> str:
        ran.append("buy")
        return "bought"

    @tool(read_only=True)
    def price(tea: str) -> str:
        ran.append("price")
        return "12"

    calls = ScriptedProvider(
        lambda request: (
            Reply(tool_calls=(ToolCall("price", {"tea": "Assam"}),))
            if request.messages[-1]["content"][-1].get("text") == "price"
            else Reply(tool_calls=(ToolCall("buy", {"tea": "Assam"}), ToolCall("kill", {"agent": "player"})))
            if request.messages[-1]["content"][-1].get("text") == "buy"
            else "done"
        )
    )
    with ActorSystem.open(":memory:", calls, tools=[buy, price]) as system:
        agent = system.root.fork("hello", name="player")
        agent.reply(timeout=DEADLINE)
        runs: list[TrialRun] = []
        judged: list[TrialRun] = []

        def show(run: TrialRun, _: Verdict) -> None:
            runs.append(run)

        search(agent, judged.append, plan=BestOf(2), options=["price", "buy"], tools=["price"], on_trial=show)
        assert [run.text for run in judged] == ["done"]
        assert ran == ["price"]
        assert [(run.text, run.diverged) for run in runs] == [("done", False), ("", True)]
        with pytest.raises(BadInput, match="declared as read_only"):
            search(agent, runs.append, plan=BestOf(2), options=["price"], tools=["buy"])
        with pytest.raises(BadInput, match="There is no tool"):
            search(agent, runs.append, plan=BestOf(2), options=["price"], tools=["sell"])
        with pytest.raises(BadInput, match="is kept"):
            runs[0].agent.configure(effects=None)
        assert system.agent("player").record.living


def test_a_trial_is_born_with_the_settings_of_then_and_its_children_do_nothing_outside_either() -> None:
    with opened(":memory:") as system:
        agent = player(system)
        place = agent.history()[-1].id
        agent.configure(max_tokens=5)
        result = search(agent, closeness, plan=BestOf(1), options=["a"], at=place)
        assert result.agent is not None
        assert settings(result.agent) == {"effects": {"run": [], "missing": "stop"}}
        assert "effects" in settings(result.agent.fork())


def test_the_history_of_a_dead_agent_is_searched_and_one_that_was_deleted_is_not() -> None:
    with opened(":memory:") as system:
        agent = player(system)
        agent.kill()
        assert search(agent, closeness, plan=BestOf(1), options=["a"]).score == 0.25
        lost = system.root.fork("x", name="lost")
        lost.reply(timeout=DEADLINE)
        lost.kill()
        prune_logs(system._store, 2**50, 1)
        with pytest.raises(HistoryPruned):
            search(lost, closeness, plan=BestOf(1), options=["a"])


@pytest.mark.parametrize("ended", [("trial",), ("trial", "experiment")])
def test_a_database_is_sound_when_trials_were_pruned_and_the_history_that_they_went_on_from_was_not(
    ended: tuple[str, ...],
) -> None:
    with opened(":memory:") as system:
        result = search(player(system), closeness, plan=BestOf(1), options=["a"])
        assert result.agent is not None
        agents = {"trial": result.agent, "experiment": result.experiment.agent}
        for uuid in ended:
            agents[uuid].kill()
        assert prune_logs(system._store, 2**50, 1).agents == len(ended)
        assert check(system._store) == []


def test_go_answers_the_same_prompt_once_more() -> None:
    answers = iter(["first", "second", "third"])
    with ActorSystem.open(":memory:", ScriptedProvider(lambda request: next(answers))) as system:
        agent = system.root.fork("hello")
        agent.reply(timeout=DEADLINE)
        place = next(message.id for message in agent.history() if message.kind == "user")
        texts: list[str] = []
        search(agent, lambda run: texts.append(run.text), plan=BestOf(2), options=[GO], at=place, parallel=1)
        assert texts == ["second", "third"]
        with pytest.raises(BadInput, match="ends with a prompt"):
            search(agent, lambda run: 1, plan=BestOf(1), options=[GO], name="other")


def test_options_may_be_a_function_of_what_was_said() -> None:
    def options(node: SearchNode) -> list[str]:
        return ["a"] if len(node.text) < 3 else []

    with opened(":memory:") as system:
        result = search(player(system), closeness, plan=Beam(1, 5), options=options)
        assert [trial.prompt for trial in result.trials] == ["a", "a"]


def test_a_judge_that_raises_loses_nothing() -> None:
    with opened(":memory:") as system:
        agent = player(system)

        def fails(run: TrialRun) -> float:
            if run.trial.number == 3:
                raise ZeroDivisionError
            return 0.5

        how: dict[str, Any] = {"plan": BestOf(4), "options": ["a"], "parallel": 2}
        with pytest.raises(ZeroDivisionError):
            search(agent, fails, **how)
        judged: list[int] = []
        result = search(agent, lambda run: judged.append(run.trial.number), **how)
        assert judged == [3, 4]
        assert [trial.score for trial in result.trials] == [0.5, 0.5, None, None]


def test_options_that_raise_end_the_call_and_no_verdict_is_lost() -> None:
    def raises(node: SearchNode) -> list[str]:
        if node.number:
            raise ZeroDivisionError
        return ["a", "b"]

    judged: list[int] = []

    def judge(run: TrialRun) -> Verdict:
        judged.append(run.trial.number)
        return closeness(run)

    with opened(":memory:") as system:
        agent = player(system)
        how: dict[str, Any] = {"plan": Beam(2, 2), "parallel": 4}
        with pytest.raises(ZeroDivisionError):
            search(agent, judge, options=raises, **how)
        assert judged == [1, 2]
        search(agent, judge, options=lambda _: ["a", "b"], **how)
        assert judged == [1, 2, 3, 4, 5, 6]


def test_options_that_have_changed_are_an_error_whether_there_are_others_or_fewer() -> None:
    with opened(":memory:") as system:
        agent = player(system)
        how: dict[str, Any] = {"plan": MCTS(6), "name": "mine"}
        now = ["a", "b"]
        whole = shape(search(agent, closeness, options=lambda _: now, **how))
        for now in (["a", "c"], ["a"], []):
            with pytest.raises(ExperimentDiffers, match="options have changed"):
                search(agent, closeness, options=lambda _: now, **how)  # noqa: B023
        now = ["a", "b"]
        assert shape(search(agent, closeness, options=lambda _: now, **how)) == whole


def test_what_cannot_be_kept_under_a_name_does_not_live_on_without_one() -> None:
    with opened(":memory:") as system:
        result = search(player(system), closeness, plan=BestOf(1), options=["a"])
        winner = result.keep("winner")
        before = [record.uuid for record in system.agents()]
        with pytest.raises(NameTaken):
            result.keep("player")
        assert result.keep("winner") == winner  # a program that was killed behind it is run again
        assert [record.uuid for record in system.agents()] == before


def test_other_terms_under_a_name_that_is_taken_are_an_error() -> None:
    with opened(":memory:") as system:
        agent = player(system)
        new = system.root.fork(name="new")
        search(agent, closeness, plan=BestOf(1), options=["a"], name="mine")
        how: dict[str, Any] = {"plan": BestOf(1), "options": ["a"], "name": "mine"}
        for other in ({"plan": BestOf(2)}, {"options": ["b"]}, {"seed": 1}, {"parallel": 2}, {"at": 0}):
            with pytest.raises(ExperimentDiffers, match="has other terms"):
                search(agent, closeness, **{**how, **other})
        for name in ("player", "new"):  # the second one has not done anything yet
            with pytest.raises(ExperimentDiffers, match="is no experiment"):
                search(agent, closeness, plan=BestOf(2), options=["a"], name=name)
        assert [message.kind for message in new.history(all=True) if message.agent_uuid == new.uuid] == ["fork"]
        again = search(agent, closeness, plan=BestOf(2), options=["a"], name="mine", fresh=True)
        assert len(again.trials) == 2


def test_a_position_within_a_step_is_refused_before_anything_is_made() -> None:
    with opened(":memory:") as system:
        agent = player(system)
        with pytest.raises(NotABoundary):
            search(agent, closeness, plan=BestOf(1), options=["a"], at=99)
        assert len(system.agents()) == 2


MISTAKES: list[dict[str, Any]] = [
    {"plan": "mcts"},
    {"options": []},
    {"options": "a"},
    {"options": ["a", ""]},
    {"options": [3]},
    {"parallel": 0},
    {"seed": -1},
    {"judge": 3},
    {"judge": later},
    {"options": later},
    {"options": ["a", GO]},
    {"tools": "price"},
    {"at": -1},
    {"under": "root"},
]


def test_a_wrong_argument_is_named_and_nothing_is_made() -> None:
    with opened(":memory:") as system:
        agent = player(system)
        for wrong in MISTAKES:
            how: dict[str, Any] = {"judge": closeness, "plan": BestOf(1), "options": ["a"], **wrong}
            with pytest.raises(BadInput):
                search(agent, **how)
            assert len(system.agents()) == 2, wrong


@pytest.mark.thorough("a host ends at each commit; a bisection does in each run")
@each_commit(7)
def test_a_search_makes_the_same_tree_at_whichever_commit_its_host_ends(step: int) -> None:
    def searched(crash: CrashPoint | None) -> tuple[bool, list[tuple[object, ...]]]:
        with simulated() as world:
            player(world.open(ScriptedProvider(echo)))
            crashed = False
            if crash is not None:
                world.crash_at(crash)
            while True:
                try:
                    result = search(
                        world.system.agent("player"), closeness, plan=MCTS(6), options=["a", "b"], parallel=2
                    )
                except ProcessCrashed:
                    world.recover()
                    crashed = True
                else:
                    assert check(world.system._store) == []
                    return crashed, shape(result)

    _, whole = searched(None)
    for point in crash_points(step):
        crashed, tree = searched(point)
        assert tree == whole
        if not crashed:
            assert point.commit > 12
            return


def test_a_search_ends_with_its_budget_and_goes_on_after_a_grant() -> None:
    def costs(request: Request) -> Reply:
        return Reply(echo(request), usage=Usage(0, 30))

    with ActorSystem.open(":memory:", ScriptedProvider(costs)) as system:
        agent = player(system)
        how: dict[str, Any] = {"plan": BestOf(6), "options": ["a", "b"], "parallel": 2, "name": "poor"}
        first = search(agent, closeness, budget={"tokens": 100}, **how)
        assert first.ended == "budget"
        judged = [trial.score for trial in first.trials if trial.score is not None]
        assert 3 <= len(judged) < 6
        again = search(agent, closeness, **how)
        assert (again.ended, again.trials) == ("budget", first.trials)
        system.agent("poor").grant(tokens=1_000)
        last = search(agent, closeness, **how)
        assert last.ended == ""
        assert [trial.score for trial in last.trials] == [0.25, 0.0] * 3


@pytest.mark.slow("takes a tenth of a second")
def test_a_search_ends_when_no_further_trial_may_be_born_and_goes_on_after_a_grant() -> None:
    judged: list[int] = []

    def judge(run: TrialRun) -> Verdict:
        judged.append(run.trial.number)
        return closeness(run)

    with opened(":memory:") as system:
        agent = player(system)
        how: dict[str, Any] = {"plan": MCTS(12), "options": ["a", "b"], "parallel": 3}
        whole = shape(search(agent, closeness, **how, name="whole"))
        for _ in range(2):
            result = search(agent, judge, **how, name="mine", budget={"agents_ever": 5})
            assert (result.ended, shape(result), judged) == ("budget", whole[:5], [1, 2, 3, 4, 5])
        system.agent("mine").grant(agents_ever=20)
        result = search(agent, judge, **how, name="mine")
        assert (result.ended, shape(result), judged) == ("", whole, list(range(1, 13)))
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_search_ends_when_its_experiment_is_stopped_and_goes_on_when_that_is_continued() -> None:
    judged: list[int] = []
    with opened(":memory:") as system:
        agent = player(system)
        how: dict[str, Any] = {"plan": MCTS(12), "options": ["a", "b"], "parallel": 3}
        whole = shape(search(agent, closeness, **how, name="whole"))

        def judge(run: TrialRun) -> Verdict:
            judged.append(run.trial.number)
            if run.trial.number == 4:
                system.agent("mine").signal(Signal.STOP)
            return closeness(run)

        result = search(agent, judge, **how, name="mine")
        assert result.ended == "stopped"
        assert shape(result) == whole[: len(result.trials)]
        assert [number for number, judgement in result.experiment.book.judged.items() if judgement] == judged
        system.agent("mine").signal(Signal.CONT)
        result = search(agent, judge, **how, name="mine")
        assert (result.ended, shape(result), judged) == ("", whole, list(range(1, 13)))


def test_what_is_kept_gets_back_no_tool_that_was_withdrawn() -> None:
    with opened(":memory:") as system:
        agent = player(system)
        place = agent.history()[-1].id
        agent.configure(tools=["fork"], max_tokens=7)
        result = search(agent, closeness, plan=BestOf(1), options=["a"], at=place)
        assert settings(result.keep()) == {"tools": ["fork"], "max_tokens": 7}


@pytest.mark.slow("takes a tenth of a second")
def test_an_experiment_goes_to_another_database_and_comes_twice_as_a_copy(tmp_path: Path) -> None:
    with opened(":memory:") as system, opened(":memory:") as other:
        result = search(player(system), closeness, plan=MCTS(4), options=["a", "b"], seed=2)
        trials = [result.experiment.agent_of(number) for number in range(1, 5)]
        system.export(result.experiment.agent, tmp_path / "whole")
        records = [json.loads(line) for line in (tmp_path / "whole").read_bytes().splitlines()]
        origins = [record for record in records if record["record"] == "origin"]
        assert len(origins) == 2  # of the experiment, and of all trials from the agent
        inherited = [record for record in records if str(record.get("agent")).startswith("origin:")]
        assert len(inherited) == sum(agent.record.fork_message_id for agent in (result.experiment.agent, trials[0])) + 1
        system.export(trials[0], tmp_path / "one")
        for there in (system, system, other):
            copy = there.import_(tmp_path / "whole")
            assert {child.reply().text for child in copy.children()} == {trial.reply().text for trial in trials}
            assert there.import_(tmp_path / "one").history()[-1].content == trials[0].history()[-1].content
            assert check(there._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_verdicts_on_trials_that_have_answered_share_a_unit_and_a_judge_that_raises_loses_none_of_them() -> None:
    def judge(run: TrialRun) -> float:
        if run.trial.number == 15:
            raise ZeroDivisionError
        return 0.5

    with simulated() as world:
        agent = player(world.open(ScriptedProvider(echo)))
        with pytest.raises(ZeroDivisionError):
            search(agent, judge, plan=BestOf(24), options=["a"], parallel=16, name="many")
        notes = [
            message.data["verdicts"] for message in world.system.agent("many").history() if "verdicts" in message.data
        ]
        assert [number for note in notes for number, *_ in note] == list(range(1, 15))
        assert max(map(len, notes)) == 9
