"""A verb does the same and says the same in a shell, as a subcommand, and as a tool."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from ikigai_actors import ActorSystem, AgentDead, AgentNotFound, BadInput, ScriptedProvider
from ikigai_actors.agent.turn.ways import WAYS
from ikigai_actors.reach.access import Access
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.shell.cli.main import cli, run
from ikigai_actors.system.handles.ref import System
from ikigai_actors.tools.function import tool as ask_first
from ikigai_actors.verbs.branches import merge_branch
from ikigai_actors.verbs.table import load
from ikigai_actors.verbs.tools import CalledPlace, call, tool_of
from ikigai_actors.verbs.verb import Verb
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually
from tests.kit.dialogue import Dialogue
from tests.kit.sessions import OpenSession, Session
from tests.kit.tool_scripts import calling


class Script:
    """Runs subcommands on the database of a session."""

    def __init__(self, session: Session, capsys: pytest.CaptureFixture[str]) -> None:
        self._database, self._capsys = session.system._store.location, capsys
        self.status = 0
        self.notices = ""

    def __call__(self, *words: str) -> list[str]:
        self._capsys.readouterr()
        self.status = run(["--database", self._database, *words])
        printed = self._capsys.readouterr()
        self.notices = printed.err
        return printed.out.splitlines()


@pytest.fixture
def session_url(new_sqlite: Callable[[], str]) -> Callable[[], str]:
    """Files, which scripts open beside the session."""
    return new_sqlite


@pytest.fixture
def script(session: Session, capsys: pytest.CaptureFixture[str]) -> Script:
    return Script(session, capsys)


def tool(name: str) -> Verb:
    verb = load(name)
    assert isinstance(verb, Verb)
    return verb


def keeping(system: System) -> CalledPlace:
    return CalledPlace(Access.of(system))


class Case(NamedTuple):
    """The same deed in three places, on an agent that is named kid."""

    slash: str
    script: str
    tool: Mapping[str, object]
    says: str
    names_agent: bool = True
    """Whether its JSON says which agent is meant."""

    def __str__(self) -> str:
        return self.script


CASES = (
    Case("/orphans", "orphans kid", {}, "when kid dies, its children: reparent"),
    Case("/orphans stop", "orphans kid stop", {"policy": "stop"}, "when kid dies, its children: stop"),
    Case("/supervise --intensity 4", "supervise kid --intensity 4", {"intensity": 4},
         "kid: one_for_one, 4 restarts in 600 s"),
    Case("/adopt other", "adopt kid other", {"child": "other"}, "kid looks after other from now on"),
    Case("/mark before milk", "mark kid before milk", {"label": "before milk"}, "marked 'before milk'"),
    Case("/clear", "clear kid", {}, "cleared: the history starts over, the settings stay"),
    Case("/undo", "undo kid", {}, "took back the latest prompt"),
    Case("/resume", "resume kid", {},
         "Nothing to resume: the latest turn of kid was neither cut off nor ended by an error."),
    Case("/set temperature 0.5", "set kid temperature 0.5", {"name": "temperature", "value": ["0.5"]},
         "temperature set to 0.5"),
    Case("/model", "model kid", {}, "model: not set"),
    Case("/system Be brief.", "system kid Be brief.", {"text": "Be brief."}, "system set to Be brief."),
    Case("/group join tasters", "group join tasters --as kid", {"what": "join", "name": "tasters"},
         "kid is now in tasters"),
    Case("/monitor other", "monitor kid other", {"watched": "other"}, "kid will hear of the death of other"),
    Case("/rules add deny bash git push *", "rules kid add deny bash git push *",
         {"what": "add", "decision": "deny", "tool": "bash", "pattern": "git push *"},
         "kid has rule 1: deny bash git push *"),
    Case("/rules", "rules kid", {}, "No rules: the policy of each tool decides.", False),
    Case("/check-mail", "check-mail kid", {}, "No unread mail."),
    Case("/filter-mail", "filter-mail kid", {}, "No mail.", False),
    Case("/wait 0", "wait kid 0", {"seconds": 0}, "No mail came in that time.", False),
    Case("/notify on", "notify kid on", {"what": "on"}, "notify is on"),
    Case("/send other The fair begins.", "send other The fair begins. --as kid",
         {"recipient": "other", "text": "The fair begins."}, "mail 1 to other", False),
    Case("/finish all done", "finish kid all done", {"text": "all done"}, "kid has ended"),
)  # fmt: skip


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(3, "a verb each")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_verb_says_the_same_in_each_place(session: Session, script: Script, case: Case) -> None:
    system, root, said = session.system, session.system.root, list[str]()
    root.prompt("tea").get(timeout=DEADLINE)

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
            line = call(keeping(system), tool(name), {"agent": "kid", **case.tool}).text
        said.append(line)
        for agent in (kid, other):
            if agent.record.living:
                agent.kill(cascade=True)
    assert said == [case.says] * 3


@pytest.mark.sample(3, "a verb each")
@pytest.mark.parametrize("case", [case for case in CASES if case.script.split()[0] not in cli.commands], ids=str)
def test_json_is_what_the_verb_returns(session: Session, script: Script, case: Case) -> None:
    session.system.root.prompt("tea").get(timeout=DEADLINE)
    kid = session.system.root.fork(name="kid")
    session.system.root.fork(name="other")
    [line] = script(*case.script.split(), "--json")
    value = json.loads(line)
    if case.names_agent:
        assert set(value) >= {"agent_uuid", "name", "label"}
        assert kid.uuid in line


@pytest.mark.slow("takes a tenth of a second")
def test_a_script_remembers_marks_compacts_and_merges_as_a_person_does(session: Session, script: Script) -> None:
    root = session.system.root
    root.prompt("tea").get(timeout=DEADLINE)
    kid = root.fork("milk", name="kid")
    kid.reply(timeout=DEADLINE)
    assert script("mark", "kid", "here") == ["marked 'here'"]
    kid.prompt("sugar").get(timeout=DEADLINE)
    assert script("rewind", "kid", "here") == ["back at mark 'here'"]
    assert "sugar" not in " ".join(script("history", "kid"))
    [first, *_] = script("history", "kid", "1")
    assert first.endswith("earlier; ikigai history kid 7 shows all)")
    [summarised] = script("compact", "kid", "--text", "They spoke of tea.")
    assert summarised.startswith(
        "summarised: ikigai history kid shows it, and ikigai uncompact kid brings the messages back"
    )
    assert json.loads(script("history", "kid", "1", "--json")[0])[0]["content"] == "They spoke of tea."
    assert script("uncompact", "kid") == ["the summary is off: all of it is back"]
    merged = json.loads(script("merge", root.uuid, "kid", "--json")[0])
    assert merged["text"].startswith("You said “milk”")
    assert script("merge", root.uuid, "kid", "--files", "--how", "summary") == []
    assert "Leave out --files" in script.notices
    assert script("merge", root.uuid, "kid", "--files") == []
    assert "no workspace here" in script.notices
    assert any(line.startswith("messages") for line in script("context", "kid"))
    assert script("settings", "kid")[-1].startswith("No setting is in force")


def test_the_ways_of_a_merge_are_those_that_a_turn_knows() -> None:
    kind = merge_branch.params[1].type
    assert isinstance(kind, click.Choice)
    assert tuple(kind.choices) == WAYS


def test_a_tool_forks_and_prompts_without_waiting_for_an_answer(session: Session) -> None:
    root = session.system.root
    made = call(keeping(session.system), tool("fork"), {"agent": root.uuid, "name": "kid", "prompt": "tea"})
    kid = session.system.agent("kid")
    assert made.value == {"agent_uuid": kid.uuid, "name": "kid", "label": "kid", "parent_uuid": root.uuid}
    left = call(keeping(session.system), tool("prompt"), {"agent": "kid", "text": "milk"})
    assert left.value == {"agent_uuid": kid.uuid, "name": "kid", "label": "kid", "mail": 1}
    many = call(keeping(session.system), tool("fork"), {"agent": "kid", "count": 3})
    assert isinstance(many.value, list)
    assert [record["parent_uuid"] for record in many.value] == [kid.uuid] * 3


@pytest.mark.slow("takes a tenth of a second")
def test_a_script_decides_on_calls_by_their_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes: list[str] = []

    @ask_first(policy="ask")
    def change(what: str) -> str:
        changes.append(what)
        return "done"

    provider = ScriptedProvider([calling(("change", {"what": "a"}), ("change", {"what": "b"})), "ready"])
    with ActorSystem.open(tmp_path / "team.db", provider, tools=[change], approvals="ask") as system:
        script = Script(Session(system, capsys), capsys)
        kid = system.root.fork("Change both.", name="kid")
        eventually(lambda: len(system.approvals.pending()) == 2, "two calls that wait")
        listed = json.loads(script("approvals", "--json")[0])
        assert [(row["agent"], row["input"]["what"]) for row in listed] == [(kid.uuid, "a"), (kid.uuid, "b")]
        a, b = (row["call"] for row in listed)
        assert [line.split()[0] for line in script("approvals")] == [a, b]
        assert script("approve", "kid") == []
        assert (script.status, "Name the call that you have looked at, with --call." in script.notices) == (1, True)
        assert script("approve", "kid", "--call", "nine") == []
        assert f"Those that do: {a} (change {{" in script.notices
        assert script("approve", "kid", "--call", b) == ["kid runs change"]
        eventually(lambda: changes == ["b"], "b is changed")
        assert script("deny", "kid", "--call", a, "not", "that") == ["kid does not run change"]
        assert kid.reply(timeout=DEADLINE).text == "ready"
        assert changes == ["b"]
        assert script("approvals") == ["No call waits for approval."]


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("by", ["a script", "a person"])
def test_who_decides_on_a_call_of_a_turn_that_was_cut_off_hears_that_it_goes_on(
    by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @ask_first(policy="ask")
    def change() -> str:
        return "done"

    provider = ScriptedProvider([calling("change"), "ready"])
    with ActorSystem.open(tmp_path / "team.db", provider, tools=[change], approvals="ask") as system:
        system.root.fork("Change it.", name="kid")
        eventually(system.approvals.pending, "the call that waits")
    after = ScriptedProvider(["ready"])
    with ActorSystem.open(tmp_path / "team.db", after, tools=[change], approvals="ask", resume=False) as system:
        session = Session(system, capsys)
        script, kid = Script(session, capsys), system.agent("kid")
        [call] = json.loads(script("approvals", "--json")[0])
        lines = script("approve", "kid", "--call", call["call"]) if by == "a script" else session("/approve 1")
        assert lines[0].endswith("kid runs change, and goes on with its turn, which was cut off")
        assert kid.reply(timeout=DEADLINE).text == "ready"


def test_a_script_writes_to_itself_and_reads_all_of_it(session: Session, script: Script) -> None:
    kid = session.system.root.fork(name="kid")
    for body in ("one", "two"):
        session.system.root.send(kid, body)
    assert script("read-mail", "kid")[1:] == ["  one", "(1 more unread)"]
    [two] = json.loads(script("read-mail", "kid", "--all", "--json")[0])
    assert (two["id"], two["body"]) == (2, "two")
    assert script("delete-mail", "kid", "1") == ["mail 1 deleted"]
    assert script("delete-mail", "kid", "1") == []
    assert script.status == 1


def test_a_script_steers_and_a_tool_does(open_session: OpenSession, capsys: pytest.CaptureFixture[str]) -> None:
    model = Dialogue()
    session = open_session(model)
    script, root = Script(session, capsys), session.system.root
    answer = root.prompt("go")
    model.asked()
    lines = script("prompt", root.uuid, "by", "train", "--steer", "--now")
    assert (lines, script.notices) == ([f"word 1 to {root.record.short}"], "")
    asked = model.asked()
    assert asked.said == ["go", "by train"]
    assert call(
        keeping(session.system), tool("prompt"), {"agent": root.uuid, "text": "at noon", "steer": True, "now": True}
    )
    asked = model.asked()
    assert asked.said == ["go", "by train", "at noon"]
    asked.answer("done")
    assert answer.get(timeout=DEADLINE).text == "done"
    assert script("prompt", root.uuid, "x", "--steer", "--wait") == []
    assert "--wait" in script.notices
    assert script("prompt", root.uuid, "x", "--now") == []
    assert "--now is for --steer" in script.notices


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
    ("arguments", "error", "says"),
    [
        ({"agent": "kid", "name": "FLY"}, BadInput, "'FLY' is not one of"),
        ({"agent": "kid"}, BadInput, "needs an argument 'name'"),
        ({"agent": "kid", "name": "INT", "loud": True}, BadInput, "no argument 'loud'; it takes name, cascade"),
        ({"agent": "kid", "name": ["INT"]}, BadInput, "a text, a number or a flag"),
        ({"agent": "nobody", "name": "INT"}, AgentNotFound, "nobody"),
    ],
)
def test_a_tool_refuses_wrong_arguments(
    session: Session, arguments: Mapping[str, object], error: type[Exception], says: str
) -> None:
    kid = session.system.root.fork(name="kid")
    with pytest.raises(error, match=says):
        call(keeping(session.system), tool("signal"), arguments)
    assert kid.record.status == "running"


def test_a_tool_raises_what_the_verb_raises_and_gives_lines_and_value(session: Session) -> None:
    kid = session.system.root.fork(name="kid")
    called = call(keeping(session.system), tool("kill"), {"agent": "kid", "reason": "for the test"})
    assert called.text.endswith("is dead")
    assert called.value == {"agent_uuid": kid.uuid, "name": "kid", "label": "kid", "dead": [kid.uuid]}
    with pytest.raises(AgentDead):
        call(keeping(session.system), tool("finish"), {"agent": kid.uuid})


def test_the_schema_of_a_tool_comes_from_the_parameters() -> None:
    schema = tool_of(tool("signal"))["input_schema"]
    assert schema["required"] == ["name", "agent"]
    assert schema["properties"]["name"] == {"type": "string", "enum": ["INT", "STOP", "CONT", "TERM", "KILL"]}
    assert schema["properties"]["grace"]["type"] == "number"
    assert schema["properties"]["cascade"]["type"] == "boolean"
    assert "timeout" not in schema["properties"]


def test_a_script_finds_what_was_said_and_a_tool_does(session: Session, script: Script) -> None:
    kid = session.system.root.fork(name="kid")
    kid.prompt("Our Tea shop").get(timeout=DEADLINE)
    listed = script("find", "kid", "tea", "SHOP")
    assert listed[0].split()[1:] == ["user", "Our", "Tea", "shop"]
    value = json.loads(script("find", "kid", "tea", "--number", "1", "--json")[0])
    assert (value["name"], len(value["found"]), value["more"]) == ("kid", 1, len(listed) > 1)
    assert call(keeping(session.system), tool("find"), {"agent": "kid", "text": "tea", "number": 1}).value == value
    assert script("find", "kid") == []
    assert (script.status, "Say what to find" in script.notices) == (2, True)


def test_a_script_sees_what_waits_and_takes_it_back(
    open_session: OpenSession, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = Gate()
    session = open_session(gate.provider)
    script, root = Script(session, capsys), session.system.root
    root.prompt("work")
    gate.wait_until_asked()
    assert script("queue", root.uuid, "and", "more") == [f"prompt 1 to {words_of(root.uuid)}"]
    assert json.loads(script("queue", root.uuid, "--json")[0]) == [{"mail": 1, "text": "and more"}]
    assert script("queue", root.uuid, "--take-back") == ["and more"]
    assert script("queue", root.uuid, "--take-back") == [f"Nothing waits for {words_of(root.uuid)}."]
    gate.open()


@pytest.mark.slow("takes a tenth of a second")
def test_a_script_is_told_the_tools_by_the_process_that_runs_the_agent(
    open_session: OpenSession, capsys: pytest.CaptureFixture[str]
) -> None:
    session = open_session(Gate().provider)
    script, root = Script(session, capsys), session.system.root
    assert [line.split()[0] for line in script("tools", root.uuid)] == [tool["name"] for tool in root.tools()]
    assert json.loads(script("tools", root.uuid, "--json")[0]) == json.loads(json.dumps(root.tools()))
    assert script("tools", root.uuid, "fork")[0].startswith("Make a copy of yourself")
    assert script("tools", root.uuid, "nothing") == []
    assert "There is no tool 'nothing'" in script.notices
    session.system.close()
    assert script("tools", root.uuid) == []
    assert "No process runs" in script.notices
