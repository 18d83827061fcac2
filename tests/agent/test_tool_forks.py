"""Models that fork themselves, from outside. On every database."""

import threading
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, AgentRef, OfflineProvider, Reply, Request, ScriptedProvider, ToolCall, Workspace
from ikigai_actors.agent.turn.request import NOT_RUN
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.messages.settings import LIVING_LIMIT
from ikigai_actors.tools.function import tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import calling, prompts, requests_of, results, scripted


def child_of(parent: str, child: str) -> str:
    return f"You are the child {child}, forked from {words_of(parent)}."


def test_parent_and_child_both_return_from_the_same_call_and_go_on(database: str) -> None:
    script = scripted([calling(("fork", {"prompt": "look", "name": "kid"})), "waiting"], kid=["found it"])
    with ActorSystem.open(database, provider=script) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "waiting"
        child = system.agent("kid")
        assert child.reply(timeout=DEADLINE).text == "found it"
        [mine], [hers] = results(requests_of(script, None)[1]), results(requests_of(script, "kid")[0])
        assert mine == ("1", f"Forked: the child is {child.record.short}.", False)
        assert hers == ("1", child_of(system.root.uuid, child.record.short), False)
        assert prompts(requests_of(script, "kid")[0]) == ["look"]
        assert prompts(requests_of(script, None)[1]) == []
        assert (child.parent, child.supervisor, system.root.children()) == (system.root, system.root, [child])
        assert (child.state, child.record.turn, child.record.restart) == ("idle", 0, "transient")
        shared = len(requests_of(script, None)[0].messages) + 1  # up to the reply that forks
        assert requests_of(script, "kid")[0].messages[:shared] == requests_of(script, None)[1].messages[:shared]


def test_a_child_hears_of_its_new_shell_where_agents_have_one(tmp_path: Path) -> None:
    script = scripted([calling(("fork", {"name": "kid"})), "waiting"], kid=["done"])
    with ActorSystem.open(":memory:", provider=script, tools=[Workspace(tmp_path, fence="none")]) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        child = system.agent("kid")
        assert child.reply(timeout=DEADLINE).text == "done"
        [result] = results(requests_of(script, "kid")[0])
        mine = child_of(system.root.uuid, child.record.short)
        assert result.content == f"{mine} Your shell is new; what the parent runs is not yours."


def test_of_several_forks_in_one_reply_a_later_child_sees_its_earlier_siblings(database: str) -> None:
    script = scripted(
        [calling(*(("fork", {"name": name, "prompt": f"be {name}"}) for name in "abc")), "done"],
        **{name: [f"I am {name}"] for name in "abc"},
    )
    with ActorSystem.open(database, provider=script) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        uuids = {name: system.agent(name).uuid for name in "abc"}
        for name in "abc":
            assert system.agent(name).reply(timeout=DEADLINE).text == f"I am {name}"
        forked = {name: f"Forked: the child is {name}." for name in "abc"}
        mine = child_of(system.root.uuid, "b")
        assert [result.content for result in results(requests_of(script, None)[1])] == list(forked.values())
        assert [result.content for result in results(requests_of(script, "b")[0])] == [forked["a"], mine, NOT_RUN]
        assert [result.is_error for result in results(requests_of(script, "b")[0])] == [False, False, True]
        assert [child.uuid for child in system.root.children()] == list(uuids.values())


def test_a_fork_beside_other_calls_waits_for_them_and_the_child_has_their_results(database: str) -> None:
    began, leave = threading.Event(), threading.Event()

    @tool
    def hold() -> str:
        began.set()
        assert leave.wait(DEADLINE)
        return "held"

    script = scripted([calling(("fork", {"name": "kid"}), "hold", "lost"), "done"], kid=["hello"])
    with ActorSystem.open(database, provider=script, tools=[hold]) as system:
        turn = system.root.prompt("go")
        assert began.wait(DEADLINE)
        assert len(system.agents()) == 1
        leave.set()
        turn.get(timeout=DEADLINE)
        assert system.agent("kid").reply(timeout=DEADLINE).text == "hello"
        held, lost, fork = results(requests_of(script, "kid")[0])
        assert (held, lost.id, lost.is_error, fork.id) == (("2", "held", False), "3", True, "1")
        parent = results(requests_of(script, None)[1])
        assert parent[:2] == [held, lost]  # what stands before the result of the fork is shared


def test_a_prompt_that_cannot_be_stored_is_stored_as_far_as_it_can(database: str) -> None:
    script = scripted([calling(("fork", {"name": "kid", "prompt": "nul \0"})), "done"], kid=["hello"])
    with ActorSystem.open(database, provider=script) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        assert system.agent("kid").reply(timeout=DEADLINE).text == "hello"
        assert prompts(requests_of(script, "kid")[0]) == ["nul \ufffd"]


@pytest.mark.slow("takes a second")
def test_a_model_forks_no_further_than_the_limit_of_living_agents() -> None:
    """In memory alone: the limit is counted by the statement that the other databases run too."""
    calls = tuple(ToolCall("fork", {}, str(number)) for number in range(2))

    def answer(request: Request) -> str | Reply:
        return "done" if results(request) else Reply(tool_calls=calls)

    with ActorSystem.open("sqlite:///:memory:", provider=ScriptedProvider(answer)) as system:
        system.root.fork(names=[f"n{number}" for number in range(LIVING_LIMIT - 2)], count=LIVING_LIMIT - 2)
        system.root.prompt("go").get(timeout=DEADLINE)
        made, refused = (message for message in system.root.history() if message.kind == "tool_result")
        assert made.content.startswith("Forked: ")
        assert refused.content.startswith(
            "A model forks only while fewer than 1,000 agents live altogether (the usual limit). "
        )
        assert len(system.agents()) == LIVING_LIMIT
        assert system.root.fork().state == "idle"  # a person may
        branch = system.agent("n0")
        branch.prompt("go").get(timeout=DEADLINE)
        assert len(branch.children()) == 2  # whoever else lives is in other branches


@pytest.mark.slow("takes a tenth of a second")
def test_a_model_forks_while_few_agents_live_in_its_own_branch(database: str) -> None:
    with ActorSystem.open(database, provider=OfflineProvider()) as system:

        def forks(agent: AgentRef) -> str:
            agent.prompt('@fork {"prompt": "Count the files."}').get(timeout=DEADLINE)
            return next(message.content for message in reversed(agent.history()) if message.kind == "tool_result")

        system.root.configure(max_agents=3)
        ann, ben = system.root.fork(name="ann"), system.root.fork(name="ben")
        for _ in range(2):
            ann.fork()
        assert forks(ben).startswith("Forked")
        refused = forks(ann)
        assert f"3 agents live in the branch of ann (max_agents, set by {words_of(system.root.uuid)})" in refused
        assert "altogether" in forks(system.root)
        leaf = ann.children()[0]
        leaf.configure(max_agents=4)
        assert forks(leaf).startswith("Forked")
        assert f"set by {words_of(leaf.uuid)}" in forks(leaf)
        ann.children()[1].kill()
        assert forks(leaf).startswith("Forked")
        assert check(system._store) == []
