"""Trials with files of their own: their tools change these, and nothing outside."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, BadInput, ScriptedProvider, Workspace
from ikigai_actors.agent.turn.calls import Call, Progress
from ikigai_actors.agent.turn.record import kept_in
from ikigai_actors.behaviour import BestOf, search
from ikigai_actors.behaviour.trials import TrialRun
from ikigai_actors.tools.policy import ToolTraits
from tests.kit.fences import needs
from tests.tools.test_forked_workspaces import bash, do, files, scripted

TRAITS = {"read": ToolTraits(read_only=True), "write": ToolTraits(confined=True), "send": ToolTraits()}


def kept(effects: Mapping[str, object]) -> set[str]:
    calls = tuple(Call(id=name, name=name, input={}, reply=1, progress=Progress.WAITING) for name in TRAITS)
    return {call.name for call in kept_in(effects, calls, TRAITS)}


def test_a_tool_that_changes_files_runs_only_where_these_are_the_trials_own_and_it_is_named() -> None:
    run = [*TRAITS]
    assert kept({"run": run}) == {"write", "send"}
    assert kept({"run": run, "files": "overlay"}) == {"send"}
    assert kept({"run": ["read"], "files": "overlay"}) == {"write", "send"}


def test_without_a_workspace_that_forks_trials_have_no_files_of_their_own() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider([])) as system:
        for chosen, told_so in (("overlay", "on_fork='overlay'"), ("mine", "one of share, overlay")):
            with pytest.raises(BadInput, match=told_so):
                search(system.root, lambda trial: 1, plan=BestOf(1), options=["x"], files=chosen)


@pytest.mark.thorough("trials in layers of files; every run has the positions of files")
@pytest.mark.slow("mounts directories and starts shells")
def test_trials_change_files_of_their_own_and_the_best_can_be_merged(tmp_path: Path) -> None:
    needs("required")
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("a\n")
    tools = [Workspace(work, fence="required", network="none", on_fork="overlay")]

    def judge(trial: TrialRun) -> float:
        said = [message.content for message in trial.agent.history() if message.kind == "tool_result"]
        shell = [text for text in said if not text.startswith("wrote")]  # the calls of a reply end in any order
        return float(shell[-1].splitlines()[-1])

    def way(number: int) -> str:
        write = ("write", {"file_path": "note", "content": "tried\n"})
        return json.dumps([write, ("bash", {"command": f"echo {number} > score; echo more >> a; cat score"})])

    with ActorSystem.open(tmp_path / "d.db", ScriptedProvider(scripted), tools=tools, approvals="allow") as system:
        worker = system.root.fork(name="worker")
        bash(worker, "echo worker >> a")
        with pytest.raises(BadInput, match="may change something outside"):
            search(worker, judge, plan=BestOf(2), options=[way(1), way(3)], tools=["write", "bash"])
        result = search(
            worker, judge, plan=BestOf(3), options=[way(1), way(3), way(2)], tools=["write", "bash"], files="overlay"
        )
        assert result.score == 3
        assert files(work) == {"a": "a\n"}
        assert bash(worker, "ls; cat a") == "a\na\nworker"
        assert result.agent is not None
        assert worker.merge_files(result.agent) == ["a", "note", "score"]
        assert bash(worker, "cat a score") == "a\nworker\nmore\n3"


@pytest.mark.thorough("the same in a system, with real shells")
def test_a_trial_that_goes_on_over_another_directory_changes_nothing_there(tmp_path: Path) -> None:
    needs("required")
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    calls = (("write", {"file_path": "a", "content": "x"}), ("bash", {"command": "echo x > b"}))

    def opened(name: str) -> ActorSystem:
        tools = [Workspace(tmp_path / name, fence="required", network="none", on_fork="overlay")]
        return ActorSystem.open(tmp_path / "d.db", ScriptedProvider(scripted), tools=tools, approvals="allow")

    with opened("one") as system:
        result = search(
            system.root, lambda trial: 1, plan=BestOf(1), options=["x"], tools=["write", "bash"], files="overlay"
        )
        assert result.agent is not None
        trial = result.agent.uuid
    with opened("other") as system:
        said = do(system.handle(trial), *calls)
        assert all(f"not over {tmp_path / 'other'}. Ask the person" in line for line in said)
        assert files(tmp_path / "other") == {}
    with opened("one") as system:
        assert any("wrote 1 bytes" in line for line in do(system.handle(trial), *calls))
        assert files(tmp_path / "one") == {}
