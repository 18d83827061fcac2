"""Names of agents: set, changed and taken away, by a handle, in the shell, on the command line and from elsewhere."""

import asyncio
import unicodedata
from collections.abc import Iterator

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentNotFound,
    BadInput,
    FunctionProvider,
    NameTaken,
    Request,
    ScriptedProvider,
    Signal,
)
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.records.agents.registry import Renamed
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.hosts.changes import AgentChange
from ikigai_actors.shell.cli.main import run as ikigai
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.testing import simulated
from supervisors.signals import Status
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.echo import echo
from tests.kit.program import Program, run
from tests.kit.sessions import Session


@pytest.fixture
def system(database: str) -> Iterator[ActorSystem]:
    """A system on a fresh database."""
    with ActorSystem.open(database, ScriptedProvider(echo)) as opened:
        yield opened


def test_a_name_is_set_changed_and_taken_away_and_agent_0_has_one_too(system: ActorSystem) -> None:
    root = system.root
    kid = root.fork()
    kid.rename("kid")
    assert (kid.name, system.agent("kid")) == ("kid", kid)
    kid.rename("child", timeout=DEADLINE)
    root.rename("kid")
    assert (system.agent("child"), system.agent("kid")) == (kid, root)
    root.rename("kid")
    root.rename("")
    kid.rename(None)
    assert (root.name, kid.name) == (None, None)
    with pytest.raises(AgentNotFound):
        system.agent("child")
    assert check(system._store) == []


def test_what_is_done_to_an_agent_while_the_registry_is_read_is_not_undone_by_what_was_read() -> None:
    heard: list[str | None] = []
    with simulated() as world:
        system = world.open(ScriptedProvider(echo))
        kid, table = system.root.fork(name="kid"), system._processes
        actor = table.get(kid.uuid)
        assert actor is not None
        world.sleep(1)  # the looks of the start are over
        subscription = system.subscribe(lambda event: heard.append(event.name), only=(Renamed,))
        read = AgentChange(kid.uuid, Status.RUNNING, "", None, "boss", 0, 0)
        table.begin_look()
        kid.rename("top")
        assert not table.catch_up(read)
        table.begin_look()
        kid.signal(Signal.STOP)
        assert not table.catch_up(read)
        world.sleep(1)
        assert (actor.called, actor.state.status) == ("top", Status.STOPPED)
        table.begin_look()
        assert table.catch_up(read)  # another process has done it since
        world.sleep(1)
        assert (actor.called, actor.state.status) == ("boss", Status.RUNNING)
        subscription.close()
    assert heard == ["top", "boss"]


def test_a_name_that_cannot_be_had_is_refused_and_the_old_one_stays(system: ActorSystem) -> None:
    zoe, kid = system.root.fork(name="Zo\u00eb"), system.root.fork(name="kid")
    with pytest.raises(NameTaken, match="A living agent is named 'Zo\u00eb'; choose another name"):
        kid.rename(unicodedata.normalize("NFD", "Zo\u00eb"))
    with pytest.raises(BadInput, match="A name is 1 to 64 letters"):
        kid.rename("two words")
    with pytest.raises(BadInput, match="may not look like a uuid"):
        kid.rename(zoe.uuid)
    assert kid.name == "kid"
    zoe.kill()
    with pytest.raises(AgentDead, match="keeps the name that it had"):
        zoe.rename("other")
    kid.rename("Zo\u00eb")
    assert system.agent("Zo\u00eb") == kid


def test_a_name_is_awaited_and_the_model_and_subscribers_hear_of_it(database: str) -> None:
    provider, heard = ScriptedProvider(echo), list[Event]()
    with ActorSystem.open(database, provider) as system:
        kid = system.root.fork()
        subscription = system.subscribe(heard.append)

        async def name_and_prompt() -> None:
            await kid.aio.rename("kid")
            await kid.prompt("tea")

        asyncio.run(name_and_prompt())
        subscription.close()
        assert Renamed(kid.uuid, "kid") in heard
    assert [request.name for request in provider.requests] == ["kid"]


def test_an_agent_that_crashed_comes_back_by_its_new_name(database: str) -> None:
    asked: list[str | None] = []

    def code(request: Request) -> str:
        asked.append(request.name)
        if len(asked) == 1:
            raise LookupError("a defect of its own")
        return "well again"

    with ActorSystem.open(database, FunctionProvider(code, "code")) as system:
        kid = system.root.fork(name="child")
        kid.rename("kid")
        assert kid.prompt("tea").get(timeout=DEADLINE).text == "well again"
        assert asked == ["kid", "kid"]


def test_names_given_beside_the_host_are_heard_of_by_the_host_and_by_all_who_are_attached(durable: str) -> None:
    host_heard, heard = list[Event](), list[Event]()
    provider = ScriptedProvider(echo)
    with ActorSystem.open(durable, provider) as host, AttachedSystem.open(durable) as system:
        kid = host.root.fork(name="child")
        assert system.agent("child").prompt("milk").get(timeout=DEADLINE).text == "milk / 1"  # it is seen, by that name
        host.subscribe(host_heard.append)
        system.subscribe(heard.append)
        system.agent("child").rename("other")
        assert ikigai(["--database", durable, "rename", "other", "kid"]) == 0
        renamed = Renamed(kid.uuid, "kid")
        eventually(lambda: renamed in host_heard and renamed in heard, "the name")
        kid.prompt("tea").get(timeout=DEADLINE)
        with pytest.raises(NameTaken):
            system.root.rename("kid")
    assert [request.name for request in provider.requests] == ["child", "kid"]


def test_an_agent_is_renamed_where_no_process_runs_it(durable: str, capsys: pytest.CaptureFixture[str]) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host:
        kid = host.root.fork(name="kid").uuid
    assert ikigai(["--database", durable, "rename", "kid", "child"]) == 0
    assert ikigai(["--database", durable, "rename", "child", ""]) == 0
    assert ikigai(["--database", durable, "rename", kid, "two words"]) == 1
    assert capsys.readouterr().out.splitlines() == ["kid is child now", f"child is {words_of(kid)} now"]


def test_the_prompt_of_the_shell_and_its_tree_follow_a_new_name(session: Session) -> None:
    printed = session(
        "/rename boss",
        "/fork --name kid --no-follow",
        "/rename --agent kid boss",
        '/rename ""',
        "/rename top",
        "/agents",
    )
    root = words_of(session.system.root.uuid)
    assert printed[0] == f"{root} is boss now"
    assert "A living agent is named 'boss'" in printed[2]
    assert printed[3:5] == [f"boss is {root} now", f"{root} is top now"]
    assert printed[5].startswith("* top ")


@pytest.mark.slow("takes half a second")
def test_the_command_renames_beside_a_running_shell_and_says_what_is_wrong(durable: str) -> None:
    with Program.by_pipe("--database", durable) as shell:
        shell.say("/fork --name kid")
        shell.expect("forked from")
        done = run("--database", durable, "rename", "kid", "buyer")
        assert (done.returncode, done.stdout, done.stderr) == (0, "kid is buyer now\n", "")
        shell.say("/switch buyer")
        shell.expect("buyer")
        shell.say("/exit")
        assert shell.ends() == 0
    done = run("--database", durable, "rename", "buyer", "two words")
    assert (done.returncode, done.stdout) == (1, "")
    assert "name" in done.stderr
    assert run("--database", durable, "rename", "nobody", "x").returncode == 1
    assert " buyer" in run("--database", durable, "agents").stdout
