"""An imported file acts with no rights of its own: whoever edits it gains nothing that the host has not allowed."""

import json
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    BadInput,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    ToolCall,
    tool,
)
from ikigai_actors.errors import ImportRefused
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.transfer.rights import restricted, without_rights
from ikigai_actors.tools import Policy
from ikigai_actors.tools.function import Tool
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE, Hanging
from tests.kit.databases import eventually
from tests.kit.exported_files import Records, edit, of, put
from tests.kit.program import run
from tests.kit.sessions import OpenSession

MEMORY = "sqlite:///:memory:"
SHELL = ToolCall("shell", {"command": "rm -rf"}, "call_1")


class Machine:
    """A host with a tool that asks, and a model that calls it when it is prompted."""

    def __init__(self) -> None:
        self.ran: list[str] = []

        @tool(policy=Policy.ASK, idempotent=True)
        def shell(command: str) -> str:
            """Run a command."""
            self.ran.append(command)
            return "done"

        self.tools: list[Tool] = [shell]

    def open(self, database: str = MEMORY) -> ActorSystem:
        """A new system on it. Nobody can be asked there, so what asks is denied."""
        return ActorSystem.open(database, ScriptedProvider(_calling), tools=self.tools)


def _calling(request: Request) -> Reply:
    answered = any(message["role"] == "user" and "tool_result" in str(message) for message in request.messages[-1:])
    return Reply("well") if answered else Reply("", (SHELL,))


@pytest.fixture
def machine() -> Machine:
    """The victim's host."""
    return Machine()


def stranger(file: Path) -> None:
    """Export an agent with rules in which a prompt waits, and make it run."""
    with Machine().open() as system:
        agent = system.root.fork(name="agent")
        agent.set_rule("allow", "shell")
        agent.signal(Signal.STOP)
        agent.prompt("please run it")
        assert not agent.resume()  # answered behind the prompt, which is kept as mail by then
        system.export(agent, file)
    edit(file, put("agent", status="running", exit_reason=None))


def answers(agent: AgentRef) -> int:
    """How many turns of an agent have ended with an answer."""
    return sum(message.content == "well" for message in agent.history())


@pytest.mark.slow("takes a tenth of a second")
def test_a_prompt_of_a_file_waits_and_its_rules_allow_nothing(machine: Machine, tmp_path: Path) -> None:
    stranger(tmp_path / "1")
    heard: list[str] = []
    with machine.open() as system:
        agent = system.import_(tmp_path / "1", notice=heard.append)
        assert (agent.state, agent.record.why_stopped) == ("stopped", "it came from a file, with work that waits")
        assert agent.rules() == []
        agent.signal(Signal.CONT)
        assert agent.prompt("Go on.").get(timeout=DEADLINE).text == "well"
        eventually(lambda: answers(agent) == 2, "both answers")  # whichever prompt came first
        [denied, _] = [message.content for message in agent.history() if message.kind == "tool_result"]
        assert denied.startswith("This call of shell needs somebody's approval")
        assert machine.ran == []
        assert check(system._store) == []
    assert heard == [
        "The file has 1 agent, 1 of them alive. Models that its settings name: none. Tools that it names: none.",
        "It has 1 rule that would allow calls. That does not count here.",
        "Work waits in agent (1 prompt). They come stopped: the signal CONT lets them begin, --go or go=True at once.",
    ]


def test_with_go_a_prompt_of_a_file_begins_and_still_allows_nothing(machine: Machine, tmp_path: Path) -> None:
    stranger(tmp_path / "1")
    with machine.open() as system:
        agent = system.import_(tmp_path / "1", go=True)
        assert agent.prompt("Go on.").get(timeout=DEADLINE).text == "well"
        eventually(lambda: answers(agent) == 2, "both answers")
        assert machine.ran == []
        with pytest.raises(BadInput, match="come stopped, or to go on at once; got both"):
            system.import_(tmp_path / "1", go=True, stopped=True)


def open_turn(file: Path, *rows: dict[str, Any]) -> None:
    """Export an agent in the midst of a turn; the file tells more of its calls than has happened."""
    calling = ScriptedProvider([Reply("", (SHELL, ToolCall("wait", {"timeout": 600}, "call_2")))])
    with ActorSystem.open(MEMORY, calling, {"hanging": (hanging := Hanging(""))}, tools=[]) as system:
        agent = system.root.fork(name="agent", model="hanging:x")
        agent.prompt("please run it")
        hanging.wait_until_asked()
        system.export(agent, file)

    def tell(records: Records) -> None:
        last = [record for record in records if record["record"] == "message"][-1]
        calls = {"tool_calls": [{"id": SHELL.id, "name": "shell", "input": dict(SHELL.input)}]}
        additions = ({"kind": "assistant", "data": {"model": "x:y", "stop_reason": "tool_use", **calls}}, *rows)
        at = records.index(last) + 1
        records[at:at] = [{**last, "content": "", "id": last["id"] + n, **row} for n, row in enumerate(additions, 1)]
        records[0]["counts"]["message"] += len(additions)

    edit(file, tell, lambda records: of(records, "message", kind="configure").update(data={"temperature": 0.5}))


CALL = {"tool_use_id": SHELL.id, "name": "shell"}
ASKED = {"kind": "approval", "content": "shell", "data": CALL}
APPROVED = {"kind": "approval", "content": "shell", "data": {**CALL, "approved": True}}
STARTED = {"kind": "tool_call", "content": "shell", "data": CALL}


@pytest.mark.sample(2, "open turns")
@pytest.mark.parametrize("rows", [(), (ASKED, APPROVED), (STARTED,), (ASKED, APPROVED, STARTED)])
def test_a_call_of_an_open_turn_was_neither_approved_nor_started_by_anybody_here(
    machine: Machine, tmp_path: Path, rows: tuple[dict[str, Any], ...]
) -> None:
    open_turn(tmp_path / "1", *rows)
    heard: list[str] = []
    with machine.open() as system:
        agent = system.import_(tmp_path / "1", notice=heard.append)
        assert heard[0].endswith("Tools that it names: shell.")
        assert heard[-1].startswith("Work waits in agent (an open turn).")
        assert agent.state == "stopped"
        agent.signal(Signal.CONT)
        assert agent.resume(timeout=DEADLINE)
        assert agent.reply(timeout=DEADLINE).text == "well"
        assert machine.ran == []
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_an_agent_may_do_no_more_than_a_child_of_the_one_under_which_it_comes(
    machine: Machine, tmp_path: Path, database: str
) -> None:
    with Machine().open() as system:
        top = system.root.fork(name="top")
        top.configure(tools=["recall", "shell", "send"])
        below = top.fork("Look.", name="below")
        below.reply(timeout=DEADLINE)
        system.export(top, tmp_path / "1")
    with machine.open(database) as system:
        under = system.root.fork(name="under")
        under.configure(tools=["shell", "send", "kill"])
        under.set_rule("deny", "shell")
        free = system.import_(tmp_path / "1")
        tied = system.import_(tmp_path / "1", under=under)
        assert free.context().settings["tools"] == ["recall", "shell", "send"]
        agents: list[AgentRef] = [tied, *tied.children()]
        for agent in agents:
            settings = agent.context().settings
            assert [str(rule) for rule in agent.rules()] == ["deny shell"]
            assert settings["tools"] == ["shell", "send"]
            assert agent.fork("Look.", at=2).reply(timeout=DEADLINE).text == "well"
        assert check(system._store) == []
        trial = system.root.fork(name="trial")
        trial.configure(effects={})
        with pytest.raises(ImportRefused, match="Agent trial is a trial, and nothing below it may have an effect"):
            system.import_(tmp_path / "1", under=trial)


@pytest.mark.slow("takes a tenth of a second")
def test_an_agent_may_fork_no_further_than_a_child_of_the_one_under_which_it_comes(
    tmp_path: Path, database: str
) -> None:
    forking = ToolCall("fork", {"prompt": "Wait."}, "call_1")

    def breeding(request: Request) -> Reply:
        return Reply("", (forking,)) if "Fork." in str(request.messages[-1]) else Reply("well")

    with Machine().open() as system:
        top = system.root.fork(name="top")
        top.configure(max_agents=10**6)
        top.fork(name="below").configure(max_agents=1)
        system.export(top, tmp_path / "1")
    with ActorSystem.open(database, ScriptedProvider(breeding)) as system:
        free = system.import_(tmp_path / "1")
        under = system.root.fork(name="under")
        under.configure(max_agents=2)
        tied = system.import_(tmp_path / "1", under=under)
        most = [
            agent.context().settings.get("max_agents") for agent in (free, *free.children(), tied, *tied.children())
        ]
        assert most == [None, 1, 2, 1]
        assert tied.prompt("Fork.").get(timeout=DEADLINE).text == "well"
        [refused] = [message.content for message in tied.history() if message.kind == "tool_result"]
        assert "A model forks only while fewer than 2 agents live" in refused
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_rules_of_a_file_that_ask_or_deny_hold_here_and_those_that_allow_do_not(
    machine: Machine, tmp_path: Path, database: str
) -> None:
    with machine.open() as system:
        top = system.root.fork(name="top")
        top.set_rule("deny", "rm")
        top.remove_rule(1)
        for decision, tool in (("allow", "*"), ("deny", "shell"), ("ask", "send")):
            top.set_rule(decision, tool, scope="self" if tool == "send" else "below")
        system.root.set_rule("deny", "kill")
        top.fork(name="below").set_rule("deny", "bash", "git push *")
        system.export(top, tmp_path / "1")
    with machine.open(database) as system:
        top = system.import_(tmp_path / "1")
        [below] = top.children()
        assert [(rule.id, str(rule)) for rule in top.rules()] == [(1, "deny shell"), (2, "ask send (this agent alone)")]
        assert {str(rule) for rule in below.rules()} == {"deny shell", "deny bash git push *"}
        assert top.set_rule("deny", "more").id == 3
        assert below.prompt("go").get(timeout=DEADLINE).text == "well"
        [denied] = [message.content for message in below.history() if message.kind == "tool_result"]
        assert denied.startswith(f"Rule 1 of agent {top.uuid} denies this call")
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_what_the_policies_of_an_earlier_program_asked_or_denied_are_rules_here(
    machine: Machine, tmp_path: Path
) -> None:
    with machine.open() as system:
        top = system.root.fork(name="top")
        top.configure(temperature=0.5)
        top.fork(name="kid")
        top.configure(temperature=0.6)
        system.export(top, tmp_path / "1")
    earlier = [{"shell": "deny", "rm": "ask", "send": "allow", "a b": "deny", "x": "?"}, {"shell": "ask"}]

    def policies(records: Records) -> None:
        for number, policy in enumerate(earlier):
            of(records, "message", number, kind="configure").update(data={"policies": policy})

    edit(tmp_path / "1", policies)
    with machine.open() as system:
        top = system.import_(tmp_path / "1")
        [kid] = top.children()
        assert [str(rule) for rule in top.rules()] == ["ask shell"]
        assert sorted(str(rule) for rule in kid.rules() if rule.agent == kid.uuid) == ["ask rm", "deny shell"]


@pytest.mark.slow("takes a tenth of a second")
def test_limits_and_options_of_a_file_do_not_count_and_it_says_so(machine: Machine, tmp_path: Path) -> None:
    lifted: dict[str, Any] = {"max_steps": 2**31 - 1, "service_retries": 9, "options": {"service_tier": "priority"}}
    kept: dict[str, Any] = {"max_steps": 7, "stream_retries": 0, "temperature": 0.5}
    heard: list[str] = []
    with machine.open() as system:
        top = system.root.fork(name="top")
        top.configure(**lifted, stuck_after=0)
        top.fork(name="below").configure(**kept, stuck_after=900)
        top.fork(name="beside")
        system.export(top, tmp_path / "1")
    with machine.open() as system:
        free = system.import_(tmp_path / "1", notice=heard.append)
        assert "Its max_steps, options, service_retries would lift limits" in heard[1]
        assert free.context().settings == {"stuck_after": 0}
        under = system.root.fork(name="under")
        under.configure(max_steps=5, stream_retries=0, stuck_after=60)
        tied = system.import_(tmp_path / "1", under=under)
        settings_by_name = {
            agent.record.name: dict(agent.context().settings) for agent in (*free.children(), tied, *tied.children())
        }
        assert settings_by_name == {
            "below": {**kept, "stuck_after": 900},
            "beside": {"stuck_after": 0},
            "top-2": {"max_steps": 5, "stream_retries": 0, "stuck_after": 60},
            "below-2": {**kept, "max_steps": 5, "stuck_after": 60},
            "beside-2": {"max_steps": 5, "stream_retries": 0, "stuck_after": 60},
        }
        assert check(system._store) == []


@pytest.mark.sample(3, "fields")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"decision": "maybe"}, "Expected decision to be"), ({"tool": "a b"}, "Expected tool to be"),
        ({"pattern": "  "}, "Expected pattern to be"), ({"scope": "all"}, "Expected scope to be"),
        ({"id": 0}, "expected a rule after 0"), ({"agent": "nobody"}, "expected an agent of this file"),
    ],
)  # fmt: skip
def test_a_rule_of_a_file_that_is_none_refuses_the_file(
    machine: Machine, tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    with machine.open() as system:
        top = system.root.fork(name="top")
        top.set_rule("deny", "shell")
        system.export(top, tmp_path / "1")
        edit(tmp_path / "1", put("rule", **change))
        with pytest.raises(ImportRefused, match=why):
            system.import_(tmp_path / "1")
        assert len(system.agents()) == 2


def test_texts_that_nobody_here_has_allowed_are_left_behind() -> None:
    for name in ("instructions", "kinds", "skills", "fork_models"):
        assert without_rights("configure", {name: [{"name": "x"}], "model": "x:y"}, False) == {
            name: None,
            "model": "x:y",
        }


def test_no_file_decides_that_a_service_keeps_what_it_is_asked_here(machine: Machine, tmp_path: Path) -> None:
    with machine.open() as source:
        agent = source.root.fork(name="agent")
        agent.configure(urgency="24h", background=True, temperature=0.5)
        source.export(agent, tmp_path / "1")
    with machine.open() as target:
        settings = target.import_(tmp_path / "1").context().settings
        assert [settings.get(name) for name in ("urgency", "background", "temperature")] == [None, None, 0.5]


def test_what_gives_no_right_is_left_as_it_is() -> None:
    for kind, data, in_open_turn in (
        ("configure", {"model": "x:y"}, True),
        ("configure", {"max_agents": 1_000, "max_steps": 50, "stream_retries": 1, "options": {}}, False),
        ("approval", {**CALL, "approved": True}, False),
        ("tool_call", CALL, False),
        ("user", {"max_agents": 10**6}, True),
    ):
        assert without_rights(kind, data, in_open_turn) is data
    assert restricted({"tools": ["a"]}, {}) == {}
    assert restricted({"max_agents": 3}, {"max_agents": 3}) == restricted({}, {"max_agents": 1_000}) == {}
    assert restricted({}, {"tools": ["a"]}) == {"tools": ["a"]}
    assert restricted({"tools": []}, {"tools": ["a"]}) == {}
    assert restricted({"fork_models": ["x:y", "x:z"]}, {"fork_models": ["x:z"]}) == {"fork_models": ["x:z"]}
    assert restricted({}, {"fork_models": ["x:z"]}) == {}


@pytest.mark.slow("takes a tenth of a second")
def test_the_commands_say_what_a_file_would_bring_before_it_comes(
    tmp_path: Path, new_sqlite: NewDatabase, open_session: OpenSession
) -> None:
    stranger(file := tmp_path / "1")
    session = open_session(ScriptedProvider(_calling))
    printed = session(f"/import --go {file}")
    assert any("Work waits in agent (1 prompt). They begin with their prompts" in line for line in printed)
    looked = run("--database", database := new_sqlite(), "import", "--dry-run", "--json", str(file))
    report = json.loads(looked.stdout)
    assert [agent["prompts"] for agent in report["agents"]] == [1]
    done = run("--database", database, "import", "--json", str(file))
    assert json.loads(done.stdout)["agents"][0]["status"] == "stopped"
