"""Turns in which a model calls tools, from outside. On every database."""

import asyncio
import contextlib
import threading

import pytest

from ikigai_actors import ActorSystem, BadInput, ProviderError, ScriptedProvider, Signal, TurnInterrupted, current_agent
from ikigai_actors.agent.turn.request import NOT_RUN
from ikigai_actors.errors import WouldWaitForItself
from ikigai_actors.tools.function import tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import OWN, calling, faults, prompts, requests_of, results, scripted, trail


@tool
def say(text: str) -> str:
    """Says it again."""
    return text


@tool(alone=True)
def whole(text: str) -> str:
    """Says it again, beside nothing else."""
    return text


def test_the_calls_of_a_reply_run_at_once(database: str) -> None:
    together, rung = threading.Barrier(2, timeout=DEADLINE), threading.Event()

    @tool
    def meet() -> str:
        together.wait()
        assert rung.wait(DEADLINE)
        return "met"

    @tool
    async def ring() -> str:
        rung.set()
        return "rung"

    script = ScriptedProvider([calling("meet", "meet", "ring"), "done"])
    with ActorSystem.open(database, provider=script, tools=[meet, ring]) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        assert results(script.requests[1]) == [("1", "met", False), ("2", "met", False), ("3", "rung", False)]
        assert trail(system.root.history())[:5] == [
            ("user", ""),
            ("assistant", ""),
            ("tool_call", "1"),
            ("tool_call", "2"),
            ("tool_call", "3"),
        ]


def test_a_tool_that_runs_alone_begins_when_those_before_it_are_done_and_those_after_wait(database: str) -> None:
    script = ScriptedProvider([calling(*((name, {"text": "x"}) for name in ("say", "whole", "say"))), "done"])
    with ActorSystem.open(database, provider=script, tools=[say, whole]) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        assert trail(system.root.history())[2:-1] == [
            (kind, call) for call in "123" for kind in ("tool_call", "tool_result")
        ]


def test_the_model_sees_results_in_the_order_of_its_calls_with_forks_last(database: str) -> None:
    second_is_done = threading.Event()

    @tool
    def slow() -> str:
        assert second_is_done.wait(DEADLINE)
        return "slow"

    script = scripted([calling("slow", ("fork", {"name": "kid"}), ("say", {"text": "quick"})), "done"], kid=["hello"])
    with ActorSystem.open(database, provider=script, tools=[slow, say]) as system:
        hearing = system.subscribe(
            lambda news: second_is_done.set() if getattr(news, "kind", "") == "tool_result" else None
        )
        system.root.prompt("go").get(timeout=DEADLINE)
        hearing.close()
        seen = results(requests_of(script, None)[1])
        assert [(result.id, result.content) for result in seen[:2]] == [("1", "slow"), ("3", "quick")]
        assert seen[2].id == "2"
        assert [call for kind, call in trail(system.root.history()) if kind == "tool_result"] == ["3", "1", "2"]
        system.agent("kid").reply(timeout=DEADLINE)


def test_a_mistake_is_a_result_that_helps_and_the_turn_goes_on(database: str) -> None:
    @tool
    def fail() -> str:
        raise SystemExit(3)

    script = ScriptedProvider([calling("fail", "lost", "say", ("say", {"text": "nul \0"})), "sorry"])
    with ActorSystem.open(database, provider=script, tools=[fail, say]) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "sorry"
        raised, unknown, wrong, fine = results(script.requests[1])
        assert (raised.content, raised.is_error) == ("SystemExit: 3", True)
        assert unknown.content == f"There is no such tool. Tools on offer: {', '.join(sorted([*OWN, 'fail', 'say']))}."
        assert "text: Missing required argument" in wrong.content
        assert fine == ("4", "nul \ufffd", False)


def test_int_ends_the_tools_and_a_late_result_is_dropped(database: str) -> None:
    began, leave, cancelled = threading.Barrier(3, timeout=DEADLINE), threading.Event(), threading.Event()

    @tool
    def hold() -> str:
        began.wait()
        assert leave.wait(DEADLINE)
        return "late"

    @tool
    async def linger() -> str:
        try:
            await asyncio.to_thread(began.wait)
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    @tool
    def again() -> str:
        leave.set()
        return "in time"

    # The later call has the id of the one that was dropped.
    script = ScriptedProvider([calling("hold", "linger", "fork"), calling("again"), "done"])
    with ActorSystem.open(database, provider=script, tools=[hold, linger, again]) as system:
        turn = system.root.prompt("go")
        began.wait()
        assert system.root.state == "running tools"
        assert system.root.signal(Signal.INT, timeout=DEADLINE)
        with pytest.raises(TurnInterrupted):
            turn.get(timeout=DEADLINE)
        assert cancelled.wait(DEADLINE)
        assert (system.root.state, system.root.record.turn) == ("idle", 0)
        assert trail(system.root.history())[-1] == ("interrupted", "")
        assert system.root.prompt("and now?").get(timeout=DEADLINE).text == "done"
        assert results(script.requests[1]) == [(call, NOT_RUN, True) for call in "123"]
        assert prompts(script.requests[1]) == ["and now?"]
        assert [result.content for result in results(script.requests[2])] == ["in time"]
        assert len(system.agents()) == 1


def test_the_tools_setting_restricts_an_agent_and_its_children_to_the_tools_that_it_names(database: str) -> None:
    script = scripted([calling("fork", ("say", {"text": "x"})), "done"], kid=["hello"])
    with ActorSystem.open(database, provider=script, tools=[say, whole]) as system:
        system.root.configure(tools=["say", "whole", "say"])
        child = system.root.fork(name="kid")
        system.root.configure(tools=["say"])
        child.prompt("hi").get(timeout=DEADLINE)
        system.root.prompt("go").get(timeout=DEADLINE)
        offered = [[tool["name"] for tool in request.tools] for request in script.requests]
        assert offered == [["say", "whole"], ["say"], ["say"]]
        refused, fine = sorted(results(script.requests[2]), key=lambda result: result.content)
        assert refused.content == "There is no such tool. Tools on offer: say."
        assert fine.content == "x"
        system.root.configure(tools=None)
        assert [tool["name"] for tool in system.root.tools()] == sorted([*OWN, "say", "whole"])
        system.root.configure(tools=[])
        assert system.root.tools() == []
        assert all(faults(request) == [] for request in script.requests)


def test_a_setting_that_names_a_tool_that_is_not_registered_fails_the_prompt(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider(["fine"]), tools=[say]) as system:
        system.root.configure(tools=["say", "gone", "lo\0st"])
        with pytest.raises(ProviderError, match=r"names gone, .*Registered: agents, cancel_reminder, check_mail, "):
            system.root.prompt("go").get(timeout=DEADLINE)
        assert (system.root.state, trail(system.root.history())[-1][0]) == ("idle", "error")
        system.root.configure(tools=["say"])
        assert system.root.prompt("again").get(timeout=DEADLINE).text == "fine"
        for wrong in ("say", [1], {"say": 1}):
            with pytest.raises(BadInput, match="tools"):
                system.root.configure(tools=wrong)


def test_the_tool_agents_tells_who_one_is_and_who_belongs_to_one(database: str) -> None:
    script = scripted(kid=[calling("agents", ("agents", {"all": True})), "done"])
    with ActorSystem.open(database, provider=script) as system:
        child = system.root.fork(name="kid")
        below = child.fork(name="grandkid")
        system.root.fork(name="other")
        child.prompt("who?").get(timeout=DEADLINE)
        listed, wrong = results(script.requests[1])
        assert (wrong.content, wrong.is_error) == ("agents takes no arguments.", True)
        assert listed.content == (
            f'{{"you": {{"agent": "{child.uuid}", "name": "kid", "state": "running tools"}}, '
            f'"supervisor": {{"agent": "{system.root.uuid}", "name": null, "state": "idle"}}, '
            f'"children": [{{"agent": "{below.uuid}", "name": "grandkid", "state": "idle"}}]}}'
        )


def test_a_tool_knows_its_agent_and_may_use_the_others(database: str) -> None:
    @tool
    def delegate() -> str:
        me = current_agent()
        return me.children()[0].fork("look", name="helper").reply(timeout=DEADLINE).text

    @tool
    async def ask(text: str) -> str:
        return (await current_agent().children()[0].aio.prompt(text)).text

    script = scripted(boss=[calling("delegate", ("ask", {"text": "x"})), "done"], helper=["I looked"], worker=["x?"])
    with ActorSystem.open(database, provider=script, tools=[delegate, ask]) as system:
        boss = system.root.fork(name="boss")
        boss.fork(name="worker")
        boss.prompt("go").get(timeout=DEADLINE)
        assert [result.content for result in results(requests_of(script, "boss")[1])] == ["I looked", "x?"]


def test_a_tool_that_would_wait_for_its_own_agent_reads_why_and_nothing_happens(database: str) -> None:
    @tool
    def fork_me() -> str:
        return current_agent().fork("x").uuid

    @tool
    def clear_me() -> int:
        return current_agent().clear()

    @tool
    async def block() -> str:
        return current_agent().children()[0].fork("x").uuid

    script = scripted([calling("fork_me", "clear_me", "block"), "done"])
    with ActorSystem.open(database, provider=script, tools=[fork_me, clear_me, block]) as system:
        child = system.root.fork(name="kid")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        errors = [result.content.partition(": ")[0] for result in results(script.requests[1])]
        assert errors == ["WouldWaitForItself", "WouldWaitForItself", "WouldDeadlock"]
        assert not child.resume(timeout=DEADLINE)  # answered in order: whatever was asked of it before has been seen
        assert len(system.agents()) == 2
        assert "clear" not in [kind for kind, _ in trail(system.root.history(all=True))]


def test_a_tool_can_ask_its_own_agent_for_what_comes_after_the_turn(database: str) -> None:
    @tool
    async def go_on_later() -> str:
        current_agent().prompt("and then")
        with contextlib.suppress(WouldWaitForItself):
            await current_agent().aio.mark("here")
        return "later"

    script = ScriptedProvider([calling("go_on_later"), "done", "and done"])
    with ActorSystem.open(database, provider=script, tools=[go_on_later]) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        system.root.clear()  # after what was asked for before
        said = [message.content for message in system.root.history(all=True) if message.kind == "assistant"]
        assert said == ["", "done", "and done"]
        assert "mark" in [kind for kind, _ in trail(system.root.history(all=True))]
