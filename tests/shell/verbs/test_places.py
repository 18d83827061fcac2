"""A verb does the same and says the same in a shell, as a subcommand, and as a tool."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from ikigai_actors import ActorSystem, AgentDead, AgentNotFound, BadInput
from ikigai_actors.shell.cli.main import run
from ikigai_actors.shell.verbs.table import load
from ikigai_actors.shell.verbs.tools import call, tool_of
from ikigai_actors.shell.verbs.verb import Verb
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.sessions import OpenSession, Session


class Script:
    """Runs subcommands on the database of a session."""

    def __init__(self, session: Session, capsys: pytest.CaptureFixture[str]) -> None:
        self._database, self._capsys = session.system.store.location, capsys
        self.status = 0
        self.notices = ""

    def __call__(self, *words: str) -> list[str]:
        self._capsys.readouterr()
        self.status = run(["--database", self._database, *words])
        printed = self._capsys.readouterr()
        self.notices = printed.err
        return printed.out.splitlines()


@pytest.fixture
def script(session: Session, capsys: pytest.CaptureFixture[str]) -> Script:
    return Script(session, capsys)


def tool(name: str) -> Verb:
    verb = load(name)
    assert isinstance(verb, Verb)
    return verb


class Case(NamedTuple):
    """The same deed in three places, on an agent that is named kid."""

    slash: str
    script: str
    tool: Mapping[str, object]
    says: str

    def __str__(self) -> str:
        return self.script


CASES = (
    Case("/orphans", "orphans kid", {}, "when kid dies, its children: reparent"),
    Case("/orphans stop", "orphans kid stop", {"policy": "stop"}, "when kid dies, its children: stop"),
    Case("/supervise --intensity 4", "supervise kid --intensity 4", {"intensity": 4},
         "kid: one_for_one, 4 restarts in 600 s"),
    Case("/adopt other", "adopt kid other", {"child": "other"}, "kid looks after other from now on"),
    Case("/finish all done", "finish kid all done", {"text": "all done"}, "kid has ended"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_verb_says_the_same_in_each_place(session: Session, script: Script, case: Case) -> None:
    system, root, said = session.system, session.system.root, []

    def without_ids(line: str) -> str:
        for record in system.agents():
            line = line.replace(f" ({record.uuid[:6]})", "")
        return line

    name = case.slash.split()[0].removeprefix("/")
    for place in ("slash", "script", "tool"):
        kid = root.fork(name="kid")
        other = root.fork(name="other")
        if place == "slash":
            [line] = session("/switch kid", case.slash)[1:2]
        elif place == "script":
            [line] = script(*case.script.split())
            assert (script.status, script.notices) == (0, "")
        else:
            line = call(system, tool(name), {"agent": "kid", **case.tool}).text
        said.append(without_ids(line))
        for agent in (kid, other):
            if agent.record.living:
                agent.kill(cascade=True)
    assert said == [case.says] * 3


@pytest.mark.parametrize("case", CASES, ids=str)
def test_json_is_what_the_verb_returns(session: Session, script: Script, case: Case) -> None:
    kid = session.system.root.fork(name="kid")
    session.system.root.fork(name="other")
    [line] = script(*case.script.split(), "--json")
    value = json.loads(line)
    assert set(value) >= {"agent_uuid", "name"}
    assert kid.uuid in json.dumps(value)


def test_a_subcommand_that_is_refused_changes_nothing_and_says_why(session: Session, script: Script) -> None:
    kid = session.system.root.fork(name="kid")
    assert script("finish", "nobody") == []
    assert (script.status, script.notices.startswith("ikigai: No agent is named 'nobody'")) == (1, True)
    assert script("orphans", "kid", "sell") == []
    assert script.status == 2
    session.system.root.fork(name="last").kill()
    assert script("adopt", "kid", "kid") == []
    assert script.status == 1
    assert kid.record.on_orphan == "reparent"


def test_what_needs_a_host_is_not_done_without_one(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    file = f"{tmp_path}/team.db"
    with ActorSystem.open(file, provider="offline") as system:
        system.root.fork(name="kid")
    assert run(["--database", file, "finish", "kid"]) == 1
    assert "No process runs the agents now" in capsys.readouterr().err
    with ActorSystem.open(file, provider="offline") as system:
        assert system.agent("kid").record.living


def test_what_is_not_done_in_time_is_taken_back(open_session: OpenSession, capsys: pytest.CaptureFixture[str]) -> None:
    gate = Gate()
    session = open_session(gate.provider)
    kid = session.system.root.fork(name="kid")
    working = kid.prompt("work")
    gate.wait_until_asked()
    script = Script(session, capsys)
    assert script("finish", "kid", "--timeout", "0") == []
    assert script.status == 3
    assert script.notices == "ikigai: Not done within 0 s, and not done later either.\n"
    gate.open()
    assert working.get(timeout=DEADLINE).text == "done"
    assert kid.prompt("and now?").get(timeout=DEADLINE).text == "done"


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"agent": "kid", "name": "FLY"}, BadInput, "'FLY' is not one of"),
        ({"agent": "kid"}, BadInput, "needs an argument 'name'"),
        ({"agent": "kid", "name": "INT", "loud": True}, BadInput, "no argument 'loud'; it takes name, cascade"),
        ({"agent": "kid", "name": ["INT"]}, BadInput, "is not one of"),
        ({"agent": "nobody", "name": "INT"}, AgentNotFound, "nobody"),
    ],
)
def test_a_tool_refuses_wrong_arguments(
    session: Session, given: Mapping[str, object], error: type[Exception], says: str
) -> None:
    kid = session.system.root.fork(name="kid")
    with pytest.raises(error, match=says):
        call(session.system, tool("signal"), given)
    assert kid.record.status == "running"


def test_a_tool_raises_what_the_verb_raises_and_gives_lines_and_value(session: Session) -> None:
    kid = session.system.root.fork(name="kid")
    called = call(session.system, tool("kill"), {"agent": "kid", "reason": "for the test"})
    assert called.text.endswith("is dead")
    assert called.value == {"agent_uuid": kid.uuid, "name": "kid", "dead": [kid.uuid]}
    with pytest.raises(AgentDead):
        call(session.system, tool("finish"), {"agent": kid.uuid})


def test_the_schema_of_a_tool_comes_from_the_parameters() -> None:
    schema = tool_of(tool("signal"))["input_schema"]
    assert schema["required"] == ["name", "agent"]
    assert schema["properties"]["name"] == {"type": "string", "enum": ["INT", "STOP", "CONT", "TERM", "KILL"]}
    assert schema["properties"]["grace"]["type"] == "number"
    assert schema["properties"]["cascade"]["type"] == "boolean"
    assert "timeout" not in schema["properties"]
