"""Many children at once: one unit, all or none, in order, each with its own first prompt."""

from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, NameTaken, ScriptedProvider
from ikigai_actors.records.fsck.check import check
from ikigai_actors.shell.cli.main import run
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.blocking_provider import DEADLINE
from tests.kit.echo import echo
from tests.kit.tool_scripts import calling, requests_of, results, scripted


def said(agent: AgentRef) -> list[str]:
    return [message.content for message in agent.history() if message.kind == "user"]


def test_children_of_a_list_of_prompts_come_in_its_order_each_with_its_own_prompt(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        system.root.prompt("tea").get(timeout=DEADLINE)
        children = system.root.fork(prompts=["one", None, "three"], names=["a", None, "c"], system="Be brief.")
        assert [child.name for child in children] == ["a", None, "c"]
        assert [said(child) for child in children] == [["tea", "one"], ["tea"], ["tea", "three"]]
        assert [children[place].reply(timeout=DEADLINE).text for place in (0, 2)] == ["one / 3", "three / 3"]
        assert {child.context().settings["system"] for child in children} == {"Be brief."}
        assert set(system.root.children()) == set(children)
        points = [child.record.fork_message_id for child in children]
        assert points == list(range(points[0], points[0] + 3))
        assert check(system._store) == []


def test_a_count_of_children_get_the_same_prompt(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        children = system.root.fork("hello", count=3)
        assert [child.reply(timeout=DEADLINE).text for child in children] == ["hello / 1"] * 3
        assert [said(child) for child in system.root.fork(count=1)] == [[]]


@pytest.mark.thorough("children of one commit, which outlive a start as the child in test_get_or_create does")
def test_they_are_there_after_a_start_and_siblings_remember_the_same(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        system.root.prompt("tea").get(timeout=DEADLINE)
        uuids = [child.uuid for child in system.root.fork(count=5)]
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        for uuid in uuids:
            assert system.agent(uuid).prompt("and now?").get(timeout=DEADLINE).text == "and now? / 3"


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"count": 0}, "Expected count to be a whole number from 1 to 10,000; got 0"),
    ({"count": 10**9}, "Expected count to be a whole number from 1 to 10,000"),
    ({"count": True}, "Expected count to be a whole number"),
    ({"count": "3"}, "Expected count to be a whole number"),
    ({"prompts": []}, "Expected the number of prompts to be a whole number from 1"),
    ({"prompts": "one"}, "Expected prompts as a list, one for each child, got 'one'"),
    ({"prompts": ["one", 2]}, r"Expected prompts\[1\] to be text; got 2"),
    ({"prompts": ["one", " "]}, r"Expected prompts\[1\] for the child, got blank text"),
    ({"prompts": ["one"] * 10_001}, "number of prompts .* from 1 to 10,000; got 10001"),
    ({"prompts": ["one"], "prompt": "two"}, "Expected prompt or prompts, got both"),
    ({"prompts": ["one"], "count": 1}, "Expected count or prompts, got both"),
    ({"count": 2, "name": "a"}, "Expected names="),
    ({"count": 2, "names": ["a"]}, "Expected 2 names, one for each child, got 1"),
    ({"count": 2, "names": "ab"}, "Expected names as a list"),
    ({"count": 2, "names": ["a", "a"]}, "got 'a' twice"),
    ({"count": 2, "names": [7, "a"]}, r"names\[0\]: Expected name to be text; got 7"),
    ({"names": ["a"]}, "Expected names together with count or prompts"),
    ({"prompts": ["one", None], "output": int}, "Expected a prompt for the child"),
    ({"count": 1000, "names": [*(f"n{place}" for place in range(999)), "two words"]}, r"names\[999\]: A name is"),
]


def test_what_cannot_be_is_one_clear_error_and_nothing_is_born() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(echo)) as system:
        for arguments, error in IMPOSSIBLE:
            for fork in (system.root.fork, system.root.aio.fork):
                with pytest.raises(BadInput, match=error):
                    fork(**arguments)
            assert len(system.agents()) == 1, error


def test_one_name_among_many_that_is_taken_leaves_nobody_born(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        kid = system.root.fork(name="kid")
        before = system.root.history()
        with pytest.raises(NameTaken, match="kid"):
            system.root.fork(count=30, names=[*(f"n{place}" for place in range(29)), "kid"])
        assert system.root.children() == [kid]
        assert system.root.history() == before
        assert len(system.root.fork(count=30, names=[f"n{place}" for place in range(30)])) == 30


@pytest.mark.thorough("a fork from elsewhere, as in test_remote_commands, of several")
def test_another_process_asks_for_many_by_one_row(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        children = system.root.fork(prompts=["one", "two"], names=["a", "b"], timeout=DEADLINE)
        assert [child.name for child in children] == ["a", "b"]
        assert [system.agent(name).reply(timeout=DEADLINE).text for name in "ab"] == ["one / 1", "two / 1"]
        with pytest.raises(NameTaken):
            system.root.fork(count=2, names=["c", "a"], timeout=DEADLINE)
        assert len(host.root.children()) == 2


def test_of_several_forks_of_a_reply_the_one_whose_name_is_taken_gets_the_reason(database: str) -> None:
    script = scripted(
        [calling(*(("fork", {"name": name}) for name in ("a", "taken", "b"))), "done"],
        a=["I am a"],
        b=["I am b"],
    )
    with ActorSystem.open(database, script) as system:
        taken = system.root.fork(name="taken")
        system.root.prompt("go").get(timeout=DEADLINE)
        assert [system.agent(name).reply(timeout=DEADLINE).text for name in "ab"] == ["I am a", "I am b"]
        all_results = results(requests_of(script, None)[1])
        assert [result.is_error for result in all_results] == [False, True, False]
        assert ["taken" in result.content for result in all_results] == [False, True, False]
        assert system.root.children()[0] == taken
        assert check(system._store) == []


def test_the_command_line_makes_many_and_names_them(durable: str, capsys: pytest.CaptureFixture[str]) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host:
        assert run(["--database", durable, "fork", host.root.uuid, "hello", "--count", "3"]) == 0
        uuids = capsys.readouterr().out.split()
        assert len(set(uuids)) == 3
        assert [host.agent(uuid).reply(timeout=DEADLINE).text for uuid in uuids] == ["hello / 1"] * 3
        assert run(["--database", durable, "fork", host.root.uuid, "--count", "0"]) == 2


def test_many_are_forked_at_an_earlier_position_too(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        system.root.prompt("tea").get(timeout=DEADLINE)
        at = system.root.history()[-1].id
        system.root.prompt("milk").get(timeout=DEADLINE)
        children = system.root.fork(prompts=["one", "two"], at=at)
        assert [said(child) for child in children] == [["tea", "one"], ["tea", "two"]]
        assert [child.reply(timeout=DEADLINE).text for child in children] == ["one / 3", "two / 3"]
        assert check(system._store) == []
