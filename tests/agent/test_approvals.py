"""Calls that ask: nobody runs them unasked, whoever decides first decides, and the question outlives the process."""

import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput
from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.store import open_store
from ikigai_actors.system.handles.ref import current_agent
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from ikigai_actors.tools.base import Toolset
from ikigai_actors.tools.function import FunctionTool, Tool, tool
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.faults import SlowToRead
from tests.kit.tool_scripts import calling, requests_of, results, scripted, trail


class World:
    """A tool that changes it, and asks; one that only looks."""

    def __init__(self) -> None:
        self.changes: list[str] = []

    def tools(self) -> list[FunctionTool]:
        """The two."""

        @tool(policy="ask")
        def change(what: str) -> str:
            self.changes.append(what)
            return f"changed {what}"

        @tool
        def look() -> str:
            return "looked"

        return [change, look]


@pytest.fixture
def world() -> World:
    return World()


def change(what: str) -> tuple[str, dict[str, Any]]:
    return ("change", {"what": what})


def waiting(system: ActorSystem, count: int = 1) -> list[PendingCall]:
    """The calls that wait, as soon as there are so many."""
    eventually(lambda: len(system.approvals.pending()) == count, f"{count} calls that wait")
    return system.approvals.pending()


def story(agent: AgentRef, call: str = "1") -> list[str]:
    """What became of a call, by kind."""
    return [kind for kind, of in trail(agent.history(all=True)) if of == call]


def test_a_call_that_asks_waits_until_it_is_approved_and_then_runs(database: str, world: World) -> None:
    script = scripted([calling(change("a"), "look"), "done"])
    with ActorSystem.open(database, provider=script, tools=world.tools(), approvals="ask") as system:
        reply = system.root.prompt("go")
        [call] = waiting(system)
        assert (call.agent, call.tool, call.input) == (system.root.uuid, "change", {"what": "a"})
        eventually(lambda: system.root.state == "waiting for approval", "the state")
        assert world.changes == []
        assert system.approvals.approve(call, timeout=DEADLINE)
        assert reply.get(timeout=DEADLINE).text == "done"
        assert world.changes == ["a"]
        assert [result.content for result in results(requests_of(script, None)[1])] == ["changed a", "looked"]
        assert story(system.root) == ["approval", "approval", "tool_call", "tool_result"]
        assert system.approvals.pending() == []


def test_the_first_decision_counts_also_when_a_later_reply_uses_the_same_id(world: World) -> None:
    script = scripted([calling(change("a")), calling(change("b")), "done"])
    with ActorSystem.open(":memory:", provider=script, tools=world.tools(), approvals="ask") as system:
        reply = system.root.prompt("go")
        [first] = waiting(system)
        assert system.approvals.approve(first)
        eventually(lambda: [call.input for call in system.approvals.pending()] == [{"what": "b"}], "the second call")
        assert not system.approvals.approve(first)
        assert not system.approvals.deny(first)
        assert world.changes == ["a"]
        assert system.approvals.approve(*system.approvals.pending())
        assert reply.get(timeout=DEADLINE).text == "done"
        assert world.changes == ["a", "b"]


def test_several_calls_are_decided_one_by_one_in_any_order(world: World) -> None:
    script = scripted([calling(change("a"), change("b"), change("c")), "done"])
    with ActorSystem.open(":memory:", provider=script, tools=world.tools(), approvals="ask") as system:
        reply = system.root.prompt("go")
        a, b, c = waiting(system, 3)
        assert system.approvals.approve(c)
        assert system.approvals.deny(a)
        assert [call.id for call in waiting(system)] == [b.id]
        assert system.approvals.approve(b)
        reply.get(timeout=DEADLINE)
        assert sorted(world.changes) == ["b", "c"]
        assert [result.is_error for result in results(requests_of(script, None)[1])] == [True, False, False]


def test_always_lets_the_agent_and_its_later_children_call_the_tool_unasked(durable: str, world: World) -> None:
    both = calling(change("a"), change("b"))
    script = scripted([both, calling(change("c")), "done"], kid=[calling(change("d")), "ok"])
    with ActorSystem.open(durable, provider=script, tools=world.tools(), approvals="ask") as system:
        reply = system.root.prompt("go")
        assert system.approvals.approve(waiting(system, 2)[1], always=True)
        assert reply.get(timeout=DEADLINE).text == "done"
        assert sorted(world.changes) == ["a", "b", "c"]
        assert system.root.fork("go", name="kid").reply(timeout=DEADLINE).text == "ok"
    assert sorted(world.changes) == ["a", "b", "c", "d"]


@pytest.mark.sample(2, "rules")
@pytest.mark.parametrize(
    ("approvals", "rule", "message"),
    [
        ("deny", (), "nobody can be asked here"),
        ("allow", ("deny", "change"), "denies this call: deny change. Do without it"),
        (lambda _: "only on Mondays", (), "This call was denied: only on Mondays"),
        (lambda _: False, (), "This call was denied: no reason was given"),
        (lambda call: 1 / 0, (), "the program that decides failed: ZeroDivisionError"),
    ],
)
def test_a_call_that_nobody_allows_is_denied_and_the_model_is_told_why(
    world: World, approvals: Any, rule: tuple[str, ...], message: str
) -> None:
    script = scripted([calling(change("a")), "pity"])
    with ActorSystem.open(":memory:", provider=script, tools=world.tools(), approvals=approvals) as system:
        if rule:
            system.root.set_rule(*rule)
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "pity"
        [seen] = results(requests_of(script, None)[1])
        assert message in seen.content
        assert seen.is_error
        assert world.changes == []


@pytest.mark.parametrize(
    ("approvals", "rule"),
    [("allow", ()), ("deny", ("allow", "ch*")), (lambda call: call.input == {"what": "a"}, ())],
)
def test_a_call_runs_unasked_where_everything_a_rule_or_the_program_allows_it(
    world: World, approvals: Any, rule: tuple[str, ...]
) -> None:
    script = scripted([calling(change("a")), "done"])
    with ActorSystem.open(":memory:", provider=script, tools=world.tools(), approvals=approvals) as system:
        if rule:
            system.root.set_rule(*rule)
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
    assert world.changes == ["a"]


def test_a_tool_that_needs_no_approval_can_be_made_to_ask(world: World) -> None:
    script = scripted([calling("look"), "done"])
    with ActorSystem.open(":memory:", provider=script, tools=world.tools(), approvals="ask") as system:
        system.root.set_rule("ask", "look")
        reply = system.root.prompt("go")
        assert system.approvals.approve(waiting(system)[0])
        assert reply.get(timeout=DEADLINE).text == "done"


def test_the_function_that_decides_may_take_its_time_and_knows_for_whom(world: World) -> None:
    asked, decide, agents = threading.Event(), threading.Event(), list[AgentRef]()

    def approver(call: PendingCall) -> bool:
        agents.append(current_agent())
        asked.set()
        return decide.wait(DEADLINE)

    script = scripted([calling(change("a"), "look"), "done"], other=["hello"])
    with ActorSystem.open(":memory:", provider=script, tools=world.tools(), approvals=approver) as system:
        reply = system.root.prompt("go")
        assert asked.wait(DEADLINE)
        assert system.root.fork("hi", name="other").reply(timeout=DEADLINE).text == "hello"
        decide.set()
        assert reply.get(timeout=DEADLINE).text == "done"
        assert agents == [system.root]


def test_an_approval_that_was_committed_is_not_asked_for_again(durable: str, world: World) -> None:
    held, script = threading.Event(), scripted([calling("look", change("a"))])

    @tool(alone=True)
    def look() -> str:
        assert held.wait(DEADLINE)
        return "looked"

    tools = [world.tools()[0], look]
    with ActorSystem.open(durable, provider=script, tools=tools, approvals="ask") as system:
        system.root.prompt("go")
        assert system.approvals.approve(waiting(system)[0])
    held.set()
    assert world.changes == []
    with ActorSystem.open(durable, provider=scripted(["done"]), tools=tools, approvals="deny", resume=True) as system:
        assert system.approvals.pending() == []
        assert system.root.reply(timeout=DEADLINE).text == "done"
    assert world.changes == ["a"]


def test_a_question_is_asked_again_of_the_function_that_decides_after_a_restart(durable: str, world: World) -> None:
    with ActorSystem.open(
        durable, provider=scripted([calling(change("a"))]), tools=world.tools(), approvals="ask"
    ) as system:
        system.root.prompt("go")
        waiting(system)
    with ActorSystem.open(
        durable, provider=scripted(["done"]), tools=world.tools(), approvals=lambda _: True, resume=True
    ) as system:
        assert system.root.reply(timeout=DEADLINE).text == "done"
        assert story(system.root) == ["approval", "approval", "tool_call", "tool_result"]


@pytest.mark.sample(1, "decisions")
@pytest.mark.parametrize("resumes", [True, False])
def test_decisions_that_come_while_the_log_is_read_are_carried_out(
    durable_url: NewDatabase, world: World, resumes: bool
) -> None:
    url, asked = durable_url(), scripted([calling(change("a"), change("b"))])
    with ActorSystem.open(url, provider=asked, tools=world.tools(), approvals="ask") as system:
        system.root.prompt("go")
        before = waiting(system, 2)
    store, may_read = SlowToRead(open_store(url)), threading.Event()
    parts = replace(SYSTEM_PLATFORM, open_store=lambda _: store)
    with (
        ActorSystem.open(
            provider=scripted(["done"]), tools=world.tools(), approvals="ask", parts=parts, resume=False
        ) as system,
        ThreadPoolExecutor() as people,
    ):
        store.hold(may_read)
        if resumes:
            system.resume()
        decided = [people.submit(system.approvals.approve, call) for call in before]
        actor = system._actor(system.root.uuid)
        eventually(lambda: actor.waiting == len(before) + resumes, "the decisions")
        may_read.set()
        assert [future.result(DEADLINE) for future in decided] == [True, True]
        assert system.root.reply(timeout=DEADLINE).text == "done"
    assert sorted(world.changes) == ["a", "b"]


def test_an_agent_whose_calls_wait_forks_and_the_child_inherits_no_question(world: World) -> None:
    script = scripted([calling(change("a"), ("fork", {"name": "kid"})), "done"], kid=["me too"], other=["hello"])
    with ActorSystem.open(":memory:", provider=script, tools=world.tools(), approvals="ask") as system:
        reply = system.root.prompt("go")
        [call] = waiting(system)
        other = system.root.fork("hi", name="other", timeout=DEADLINE)
        assert other.reply(timeout=DEADLINE).text == "hello"
        eventually(lambda: len(system.agents()) == 3, "the child of the model")
        assert system.agent("kid").reply(timeout=DEADLINE).text == "me too"
        not_run, _ = results(requests_of(script, "kid")[0])
        assert not_run.content == "not run in this process"
        assert system.approvals.pending() == [call]
        assert system.approvals.approve(call)
        assert reply.get(timeout=DEADLINE).text == "done"


def test_what_decides_and_policies_are_checked(world: World) -> None:
    with pytest.raises(BadInput, match="'ask', 'deny' or 'allow'; got 'perhaps'"):
        ActorSystem.open(":memory:", approvals="perhaps")
    with pytest.raises(BadInput, match="Expected policy to be one of allow, ask, deny; got 'maybe'"):
        tool(policy="maybe")(change)
    with ActorSystem.open(":memory:", provider=scripted([calling(change("a"))]), tools=world.tools()) as system:
        with pytest.raises(BadInput, match="Expected decision to be one of allow, ask, deny"):
            system.root.set_rule("perhaps", "change")
        call = PendingCall(system.root.uuid, 1, "1", "change", {})
        with pytest.raises(BadInput, match="Expected always to be one of tool, exact"):
            system.approvals.approve(call, always="ever")
        with pytest.raises(BadInput, match="'exact' is for commands of bash"):
            system.approvals.approve(call, always="exact")


def test_an_approval_of_other_arguments_than_the_models_is_refused_and_the_call_waits_on(world: World) -> None:
    script = scripted([calling(change("a")), "done"])
    with ActorSystem.open(":memory:", provider=script, tools=world.tools(), approvals="ask") as system:
        reply = system.root.prompt("go")
        [call] = waiting(system)
        with pytest.raises(BadInput, match="has other arguments than the one that was decided on, and still waits"):
            system.approvals.approve(replace(call, input={"what": "gold"}))
        assert system.approvals.pending() == [call]
        assert system.approvals.approve(call, by="anna@shop")
        assert reply.get(timeout=DEADLINE).text == "done"
        assert world.changes == ["a"]
        asked, decided = (message.data for message in system.root.history() if message.kind == "approval")
        digest = sha256(b'change\n{"what":"a"}').hexdigest()
        assert (call.sha256, asked["call_sha256"], decided["call_sha256"]) == (digest, digest, digest)
        assert (asked.get("by"), decided["by"]) == (None, "anna@shop")


def changing(description: str, changes: list[str]) -> FunctionTool:
    """A tool that asks, as it is described at some time."""

    @tool(name="change", policy="ask", description=description)
    def change(what: str) -> str:
        changes.append(what)
        return f"changed {what}"

    return change


class Elsewhere(Toolset):
    """Tools that another program offers: they change, and the build stays."""

    name = "elsewhere"

    def __init__(self, *tools: Tool) -> None:
        self._tools = tools

    async def open(self, tell: object) -> Sequence[Tool]:
        return self._tools

    async def leave(self, agent: str) -> None: ...

    async def close(self) -> None: ...


@pytest.mark.slow("takes a tenth of a second")
def test_a_question_about_a_tool_that_has_changed_since_is_asked_again(durable: str) -> None:
    changes: list[str] = []
    script = scripted([calling(change("a")), "done"])
    tools = [Elsewhere(changing("Change it.", changes))]
    with ActorSystem.open(durable, provider=script, tools=tools, approvals="ask") as system:
        system.root.prompt("go")
        [first] = waiting(system)
        assert (len(first.definition), first.former) == (64, "")
    tools = [Elsewhere(changing("Change it, and tell everybody.", changes))]
    with ActorSystem.open(durable, provider=script, tools=tools, approvals="ask", resume=False) as system:
        [shown] = waiting(system)
        assert system.approvals.approve(shown, by="anna@shop")  # about the definition of then
        eventually(lambda: [call.former for call in system.approvals.pending()] == [first.definition], "a new question")
        [again] = system.approvals.pending()
        assert again.definition not in ("", first.definition)
        assert again.change.split("\n")[:2] == ["-Change it.", "+Change it, and tell everybody."]
        assert (again.build, "build:" in again.change) == (first.build, False)
        assert re.fullmatch(rf"{re.escape(first.full_name)}/[0-9a-f]{{8}}", again.full_name)
        with pytest.raises(BadInput, match="has changed since the question that was decided on"):
            system.approvals.approve(shown, by="anna@shop")
        assert changes == []
        assert system.approvals.approve(again, by="anna@shop")
        assert system.root.reply(timeout=DEADLINE).text == "done"
        assert changes == ["a"]
        [begun] = [message.data for message in system.root.history() if message.kind == "tool_call"]
        assert begun["definition"] == again.definition


@pytest.mark.slow("takes a tenth of a second")
def test_a_question_about_a_tool_that_is_the_same_stands(durable: str) -> None:
    changes: list[str] = []
    script = scripted([calling(change("a")), "done"])
    for _ in range(2):
        tools = [changing("Change it.", changes)]
        with ActorSystem.open(durable, provider=script, tools=tools, approvals="ask") as system:
            if not system.root.record.turn:
                system.root.prompt("go")
                waiting(system)
                continue
            assert system.approvals.approve(waiting(system)[0])
            assert system.root.reply(timeout=DEADLINE).text == "done"
            assert [message.kind for message in system.root.history()].count("approval") == 2
    assert changes == ["a"]


def paying(unit: str, paid: list[str]) -> FunctionTool:
    """A tool that asks, and of which nobody sees what it pays with."""

    @tool(policy="ask")
    def pay(amount: int) -> str:
        paid.append(f"{amount} {unit}")
        return "paid"

    return pay


@pytest.mark.slow("takes a tenth of a second")
def test_a_question_of_another_build_is_asked_again_though_the_tools_look_alike(durable: str) -> None:
    paid: list[str] = []
    script = scripted([calling(("pay", {"amount": 5})), "done"])
    tools = [paying("cents", paid)]
    with ActorSystem.open(durable, provider=script, tools=tools, approvals="ask", build="a") as system:
        system.root.prompt("go")
        [first] = waiting(system)
        assert (first.build, first.former_build, first.change) == ("a", "", "")
    names = [first.full_name]
    shown = first
    for before, build in (("a", "b"), ("b", "c")):
        tools = [paying("thousand dollars", paid)]
        with ActorSystem.open(durable, provider=script, tools=tools, approvals="ask", build=build) as system:
            eventually(lambda: system.approvals.pending()[0].full_name not in names, "a new question")
            [again] = system.approvals.pending()
            assert (again.definition, again.former, again.former_build) == (first.definition, first.definition, before)
            assert again.change == f"-build: {before}\n+build: {build}"
            with pytest.raises(BadInput, match="has changed since the question that was decided on"):
                system.approvals.approve(shown)
            assert system.approvals.find(system.root, names[-1]) is None
            names.append(again.full_name)
            shown = again
            if build == "c":
                assert system.approvals.approve(again)
                assert system.root.reply(timeout=DEADLINE).text == "done"
                [begun] = [message.data for message in system.root.history() if message.kind == "tool_call"]
                assert (begun["definition"], begun["build"]) == (again.definition, "c")
    assert len({*names}) == 3
    assert paid == ["5 thousand dollars"]


def test_an_approval_does_not_hold_for_a_build_that_has_come_since(durable: str, world: World) -> None:
    held, script = threading.Event(), scripted([calling("look", change("a"))])

    @tool(alone=True)
    def look() -> str:
        assert held.wait(DEADLINE)
        return "looked"

    tools = [world.tools()[0], look]
    with ActorSystem.open(durable, provider=script, tools=tools, approvals="ask", build="a") as system:
        system.root.prompt("go")
        assert system.approvals.approve(waiting(system)[0])
    held.set()
    with ActorSystem.open(durable, provider=scripted(["done"]), tools=tools, approvals="ask", build="b") as system:
        [again] = waiting(system)
        assert (again.former_build, again.build, world.changes) == ("a", "b", [])
        assert system.approvals.approve(again)
        assert system.root.reply(timeout=DEADLINE).text == "done"
    assert world.changes == ["a"]
