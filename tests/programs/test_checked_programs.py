"""``ikigai programs check``: which open turns no longer fit changed programs is known before these run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, AgentRef, current_agent
from ikigai_actors.programs import Program, program, step
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.verbs.upkeep.programs import check_programs_of
from tests.kit.blocking_provider import Hanging
from tests.system.test_cut_off import said

DONE: list[str] = []


def do(what: str) -> str:
    DONE.append(what)
    return what


def lead(task: str) -> str:
    kid = current_agent().fork(name="kid", model="hangs")
    step(do, "a")
    return str(kid.prompt("go").get().text)


def steps_before(task: str) -> str:
    kid = current_agent().fork(name="kid", model="hangs")
    step(do, "b")
    step(do, "a")
    return str(kid.prompt("go").get().text)


def raises(task: str) -> str:
    current_agent().fork(name="kid", model="hangs")
    raise ValueError("a bug")


def goes_further(task: str) -> str:
    me = current_agent()
    kid = me.fork(name="kid", model="hangs")
    step(do, "a")
    me.system.send(kid, "a mail")  # no act of a program: whatever it changes is refused
    return str(kid.prompt("go").get().text)


CHANGED = {
    lead: "",
    steps_before: r"The function was changed: line \d+ asks for step\(.*b.*nothing asks for step\(.*a.*at message",
    raises: r"ValueError: a bug \(raises, line \d+\)",
    goes_further: "only looking is allowed",
}


def called_lead(function: Any) -> Program:
    """A later version of the program."""
    made = program(function)
    made.name, made.version = "lead", f"lead@{made.version.partition('@')[2]}"
    return made


def app() -> dict[str, Any]:
    return {"programs": [called_lead(steps_before)]}


@pytest.fixture
def open_turn(durable: str) -> str:
    """A database with an open turn of the program, in which it waits."""
    DONE.clear()
    hanging, programs = Hanging(""), [program(lead)]
    with ActorSystem.open(durable, "offline", {"hangs": hanging}, programs=programs) as system:
        boss: AgentRef = system.root.fork(name="boss", model="lead")
        boss.prompt("go")
        hanging.wait_until_asked()
    return durable


@pytest.mark.sample(2, "ways to change a program")
@pytest.mark.parametrize("function", CHANGED)
def test_a_turn_that_no_longer_fits_is_listed_with_why_and_nothing_is_done(open_turn: str, function: Any) -> None:
    [turn] = check_programs_of(open_turn, [called_lead(function)])
    assert (turn.name, turn.why == "") == ("boss", CHANGED[function] == "")
    assert re.search(CHANGED[function], turn.why)
    assert DONE == ["a"]


def test_the_command_says_so_by_lines_json_and_its_exit_status(tmp_path: Path) -> None:
    DONE.clear()
    database, hanging, programs = str(tmp_path / "team.db"), Hanging(""), [program(lead)]
    with ActorSystem.open(database, "offline", {"hangs": hanging}, programs=programs) as system:
        boss = system.root.fork(name="boss", model="lead")
        boss.prompt("go")
        hanging.wait_until_asked()
        asked = ["--database", database, "programs", "check", "--app", f"{__name__}:app"]
        done = CliRunner().invoke(cli, asked)
        assert done.exit_code == 1
        assert "boss, turn 3, lead@" in done.stdout
        assert "1 open turn of programs: 0 fit, 1 do not" in done.stdout
        [row] = json.loads(CliRunner().invoke(cli, [*asked, "--json"]).stdout)
        assert (row["agent"], row["turn"]) == (boss.uuid, 3)
        assert CliRunner().invoke(cli, asked[:-2]).exit_code == 2
        assert (DONE, said(system.agent("kid"))) == (["a"], ["go"])
