"""Searches do not show what a rule about paths keeps from the model."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, Reply, Request, ScriptedProvider, ToolCall, Workspace
from ikigai_actors.tools.workspace.withheld import KEPT_BACK
from tests.kit.blocking_provider import DEADLINE
from tests.kit.fences import needs

Given = tuple[str, str] | tuple[str, str, str]


def model(request: Request) -> Reply | str:
    """Make the call that the latest prompt names; then say that it is done."""
    last = request.messages[-1]["content"]
    text = last if isinstance(last, str) else str(last[0].get("text", ""))
    if not text.startswith("["):
        return "done"
    name, arguments = json.loads(text)
    return Reply(tool_calls=(ToolCall(name, arguments),))


def use(agent: AgentRef, name: str, **arguments: Any) -> str:
    """The result of a call, with paths as they are beneath the workspace."""
    agent.prompt(json.dumps([name, arguments])).get(timeout=DEADLINE)
    result = [message.content for message in agent.history() if message.kind == "tool_result"][-1]
    return re.sub(r"\S*/desk/", "", result)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IKIGAI_HOME", str(tmp_path / "home"))
    work = tmp_path / "desk"
    for place in ("plan", "secrets/key", "secrets/deep/key", "src/plan"):
        (work / place).parent.mkdir(parents=True, exist_ok=True)
        (work / place).write_text("tea\n")
    (work / "secrets/long").write_text("tea\n" * 20_000)
    (work / "secrets/of a\nline").write_text("tea\n")
    (work / "way").symlink_to("secrets")
    return work


@contextmanager
def opened(work: Path, fence: str, *rules: Given, on_fork: str = "share") -> Iterator[AgentRef]:
    tools = [Workspace(work, fence=fence, on_fork=on_fork)]
    with ActorSystem.open(":memory:", ScriptedProvider(model), tools=tools, approvals="allow", rules=rules) as system:
        yield system.root


def lines(result: str) -> list[str]:
    return sorted(result.splitlines())


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "rules")
@pytest.mark.parametrize("fence", ["none", "auto"])
@pytest.mark.parametrize(
    "rule", [("deny", "read", "secrets/**"), ("ask", "*", "secrets/**"), ("deny", "grep", "secrets/**")]
)
def test_grep_shows_no_line_of_a_file_that_a_rule_keeps(work: Path, fence: str, rule: Given) -> None:
    with opened(work, fence, rule) as agent:
        assert lines(use(agent, "grep", pattern="tea")) == [KEPT_BACK, "plan:1:tea", "src/plan:1:tea"]
        assert lines(use(agent, "grep", pattern="tea", path="src")) == ["src/plan:1:tea"]
        assert lines(use(agent, "grep", pattern="coffee", path="src")) == ["no matches"]


@pytest.mark.sample(1, "tiers of the fence")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("fence", ["none", "auto"])
def test_a_search_by_another_name_of_a_directory_shows_no_more(work: Path, fence: str) -> None:
    with opened(work, fence, ("deny", "read", "secrets/**")) as agent:
        for path in ("secrets", "way", "secrets/key", "way/key", str(work / "secrets" / "deep")):
            assert lines(use(agent, "grep", pattern="tea", path=path)) == [KEPT_BACK, "no matches"], path
        assert lines(use(agent, "glob", pattern="way/*")) == [KEPT_BACK, "no matches"]


def test_glob_names_no_file_that_may_not_be_read_and_those_about_which_reading_asks(work: Path) -> None:
    with opened(work, "none", ("deny", "read", "secrets/deep/**"), ("ask", "read", "**/key")) as agent:
        assert lines(use(agent, "glob", pattern="**/k*")) == [KEPT_BACK, "secrets/key"]
        assert lines(use(agent, "glob", pattern="src/*")) == ["src/plan"]


def test_a_search_that_was_asked_about_shows_what_it_asked_for(work: Path) -> None:
    with opened(work, "none", ("ask", "grep", "secrets/**")) as agent:  # all that asks is approved here
        assert use(agent, "grep", pattern="tea", path="secrets/deep") == "secrets/deep/key:1:tea\n"
        assert KEPT_BACK in use(agent, "grep", pattern="tea")


def test_rules_about_tools_and_rules_that_allow_keep_nothing(work: Path) -> None:
    with opened(work, "none", ("deny", "read"), ("allow", "grep", "src/**"), ("deny", "write", "src/**")) as agent:
        assert lines(use(agent, "grep", pattern="tea", path="src")) == ["src/plan:1:tea"]


@pytest.mark.thorough("a second play of layers")
def test_files_of_its_own_are_kept_from_a_fork_by_the_same_rules(work: Path) -> None:
    needs("required")
    with opened(work, "required", ("deny", "read", "secrets/**"), on_fork="overlay") as agent:
        kid = agent.fork()
        use(
            kid, "bash", command="mkdir secrets/new; echo tea > secrets/new/key; echo tea > src/new; ln -s secrets way2"
        )
        assert lines(use(kid, "grep", pattern="tea")) == [KEPT_BACK, "plan:1:tea", "src/new:1:tea", "src/plan:1:tea"]
        for path in ("secrets/new", "way2/new"):
            assert lines(use(kid, "grep", pattern="tea", path=path)) == [KEPT_BACK, "no matches"]
        assert lines(use(kid, "glob", pattern="*/new*")) == [KEPT_BACK, "src/new"]
