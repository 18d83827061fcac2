"""Which files an agent had at a position of its log: by the rows, and in searches and bisections with real mounts."""

import json
import random
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, Child, ScriptedProvider, Workspace
from ikigai_actors.behaviour import BestOf, Found, TrialRun, bisect, search
from ikigai_actors.tools.trees.tree import DIRECTLY, TreeWrite, layers_at
from tests.kit.fences import needs
from tests.tools.test_forked_workspaces import bash, do, files, scripted


def writes(*made: tuple[int, int]) -> list[TreeWrite]:
    """Writes, each a layer and a position."""
    return [TreeWrite("a", "/work", layer, position) for layer, position in made]


def test_files_are_known_where_no_layer_was_written_to_before_and_after() -> None:
    made = writes((0, 3), (0, 7), (1, 9), (3, 20))
    known = {at: layers_at(3, made, at) for at in (0, 2, 3, 6, 7, 8, 9, 19, 20, 99)}
    assert known == {0: 0, 2: 0, 3: None, 6: None, 7: 1, 8: 1, 9: 2, 19: 2, 20: 4, 99: 4}
    assert layers_at(2, [], 5) == 3


def test_what_an_agent_wrote_to_the_directory_itself_is_known_only_when_it_wrote_no_more() -> None:
    made = writes((DIRECTLY, 4), (0, 8))
    assert [layers_at(0, made, at) for at in (3, 4, 7, 8)] == [None, 0, 0, 1]
    assert [layers_at(DIRECTLY, writes((DIRECTLY, 4)), at) for at in (3, 4)] == [None, 0]


def test_what_is_known_is_what_a_model_that_copies_has_at_that_position() -> None:
    drawn = random.Random(7)
    for _ in range(300):
        upper = 0
        made: list[TreeWrite] = []
        shown: list[tuple[int, ...]] = [()]  # by position: the layers that were written to, as often as they were
        for position in range(1, drawn.randrange(12)):
            shown.append(shown[-1])
            if drawn.random() < 0.4:
                upper += 1
            elif drawn.random() < 0.6:
                made += writes((upper, position))
                shown[-1] = (*shown[-1], upper)
        for at, then in enumerate(shown):
            count = layers_at(upper, made, at)
            now = tuple(layer for layer in shown[-1] if count is None or layer < count)
            assert (count is None) == all(
                tuple(layer for layer in shown[-1] if layer < each) != then for each in range(upper + 2)
            )
            assert count is None or now == then


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    needs("required")
    monkeypatch.setenv("IKIGAI_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a").write_text("good\n")
    return tmp_path / "work"


def opened(work: Path, *, keep_turns: bool) -> ActorSystem:
    tools = [Workspace(work, fence="required", network="none", on_fork="overlay", keep_turns=keep_turns)]
    return ActorSystem.open(work.parent / "d.db", ScriptedProvider(scripted), tools=tools, approvals="allow")


def printed(trial: AgentRef | None) -> str:
    """What the latest command of a trial has printed."""
    assert trial is not None
    results = [message.content for message in trial.history() if message.kind == "tool_result"]
    return results[-1].splitlines()[-1]


def has_printed(trial: TrialRun) -> float:
    return float(bool(printed(trial.agent)))


CAT = json.dumps([("bash", {"command": "cat a"})])


@pytest.mark.thorough("two experiments over layers; trials over files are in every run")
@pytest.mark.slow("mounts directories and starts shells")
def test_a_search_and_a_bisection_look_at_the_files_of_each_turn_where_these_are_kept(work: Path) -> None:
    with opened(work, keep_turns=True) as system:
        worker = system.root.fork(name="worker")
        ends = [0]
        for number, word in enumerate(("good", "fine", "bad", "worse")):
            bash(worker, f"echo {word} > {work}/a; cd /tmp; export n={number}")
            ends.append(worker.history()[-1].id)
        [told_so] = do(worker, ("bash", {"command": f"cat {work}/a; pwd; echo $n"}))
        assert told_so.splitlines()[1:] == ["worse", "/tmp", "3"]
        assert "; your files up to here are kept, so background jobs were ended;" in told_so
        assert files(work) == {"a": "good\n"}
        result = search(worker, has_printed, plan=BestOf(1), options=[CAT], at=ends[2], tools=["bash"], files="overlay")
        assert printed(result.agent) == "fine"
        culprit = bisect(
            worker, lambda trial: printed(trial.agent) in ("good", "fine"), probe=CAT, tools=["bash"], files="overlay"
        )
        assert culprit.position == ends[3]
        [early] = system.root.fork_many([Child(worker, at=ends[2])])
        assert bash(early, "cat a") == "fine"


@pytest.mark.slow("mounts directories and starts shells")
def test_a_trial_is_refused_where_the_files_of_then_are_not_known(work: Path) -> None:
    with opened(work, keep_turns=False) as system:
        worker = system.root.fork(name="worker")
        bash(worker, "echo fine > a")
        early = worker.history()[-1].id
        bash(worker, "echo bad > a")

        def searched(at: int) -> Found:
            return search(worker, has_printed, plan=BestOf(1), options=[CAT], at=at, tools=["bash"], files="overlay")

        with pytest.raises(BadInput, match=rf"at position {early} are not known.*keep_turns=True"):
            searched(early)
        with pytest.raises(BadInput, match="are not known"):
            bisect(worker, lambda trial: True, probe=CAT, tools=["bash"], files="overlay")
        [now] = system.root.fork_many([Child(worker, at=early)])
        assert bash(now, "cat a") == "bad"  # a child that is no trial gets those of now
        late = worker.history()[-1].id
        bash(worker, "echo worse > a")
        assert printed(searched(late).agent) == "bad"
