"""When no living agent bears a name, the dead one that bore it last is found; who acts on it is told so."""

import pytest

from ikigai_actors import ActorSystem, AgentDead, AgentNotFound, ScriptedProvider
from tests.kit.echo import echo
from tests.kit.program import run
from tests.kit.tool_scripts import calling, requests_of, results, scripted


def test_a_name_finds_the_living_bearer_and_else_the_dead_one_that_died_last(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        first = system.root.fork(name="b")
        second_life = [first]
        for _ in range(2):
            second_life[-1].kill()
            assert system.agent("b") == second_life[-1]
            second_life.append(system.root.fork(name="b"))
            assert system.agent("b") == second_life[-1]
        with pytest.raises(AgentNotFound, match="nobody is called 'c'"):
            system.agent("c")


def test_zero_is_agent_0_unless_somebody_is_called_so(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        assert system.agent("0") == system.root
        assert system.agent(system.root.fork(name="0").uuid) == system.agent("0") != system.root


@pytest.mark.slow("takes half a second")
def test_who_acts_on_a_dead_one_by_its_name_is_told_that_it_is_dead(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        system.root.fork("hello", name="team-1").reply(timeout=20)
        system.agent("team-1").kill()
        with pytest.raises(AgentDead, match="is dead and takes no mail"):
            system.send("team-1", "x")
        with pytest.raises(AgentDead, match="it is dead already"):
            system.agent("team-1").kill()
        with pytest.raises(AgentDead):
            system.agent("team-1").prompt("x")
        assert system.root.wait(["team-1"], timeout=0) == {"team-1": "dead"}
        assert [message.content for message in system.agent("team-1").history() if message.kind == "user"] == ["hello"]
    for arguments, reason in (
        (("kill", "team-1"), "it is dead already"),
        (("send", "team-1", "x"), "is dead and takes no mail"),
        (("prompt", "team-1", "x"), "is dead and takes no"),
        (("kill", "team-2"), "team-2"),
    ):
        done = run("--database", durable, *arguments)
        assert (done.stdout, done.returncode) == ("", 1)
        assert reason in done.stderr
    done = run("--database", durable, "log", "team-1")
    assert "hello" in done.stdout


def test_a_model_is_told_that_whom_it_names_is_dead(database: str) -> None:
    calls = calling(("kill", {"agent": "b"}), ("send", {"to": "b", "body": "x"}), ("wait", {"agents": ["b"]}))
    script = scripted([calls, "done"])
    with ActorSystem.open(database, script) as system:
        system.root.fork(name="b").kill()
        system.root.prompt("go").get(timeout=60)
        texts = [str(result) for result in results(requests_of(script, None)[1])]
        for text, expected in zip(texts, ("it is dead already", "is dead and takes no mail", "dead"), strict=True):
            assert expected in text
