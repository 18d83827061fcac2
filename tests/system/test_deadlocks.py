"""Agents that wait for one another in a circle: whoever closes it is refused, and all go on."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    FunctionProvider,
    ProviderError,
    Request,
    ScriptedProvider,
    Stream,
    WouldDeadlock,
    current_agent,
    tool,
)
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.testing import simulated
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import calling, results

WAYS: dict[str, Callable[[AgentRef, AgentRef], Any]] = {
    "prompt": lambda me, other: other.prompt("hi").get(),
    "prompt in time": lambda me, other: other.prompt("hi").get(timeout=DEADLINE),
    "reply": lambda me, other: other.reply(),
    "wait": lambda me, other: me.wait([other]),
    "wait for a name": lambda me, other: me.wait([other.name or ""], timeout=DEADLINE),
    "fork": lambda me, other: other.fork(),
    "clear": lambda me, other: other.clear(),
}
"""How the code of an agent waits for another one."""


def following(agents: str) -> Callable[[str], str]:
    """Who comes next in a circle of agents, by name."""
    return lambda name: agents[(agents.index(name) + 1) % len(agents)]


@pytest.mark.sample(2, "ways to wait")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_who_closes_a_circle_of_waits_is_told_the_circle_and_the_turns_end(
    way: Callable[[AgentRef, AgentRef], Any],
) -> None:
    errors = list[WouldDeadlock]()

    def act(request: Request) -> str:
        me = after(request.name or "")
        if request.name == "a":
            return str(after("b").prompt("hi").get())
        me.wait(timeout=1)  # until a waits
        try:
            return str(way(me, after("a")))
        except WouldDeadlock as error:
            errors.append(error)
            return "refused"

    with simulated() as world:
        system = world.open(FunctionProvider(act))
        a, b = system.root.fork(name="a"), system.root.fork(name="b")
        assert "refused" in a.prompt("go").get().text
        assert b.reply().text == "refused"
        [error] = errors
        assert "b waits for a waits for b" in str(error)
        assert error.circle == (b.uuid, a.uuid)
        assert system.root.wait([a, b]) == {a: WaitResult.IDLE, b: WaitResult.IDLE}
        assert [prompt.content for prompt in a.history() if prompt.kind == "user"] == ["go"]


def test_a_circle_that_nobody_catches_ends_in_an_error_that_names_it_and_no_agent_crashes() -> None:
    names = "abcd"
    follows = following(names)

    def act(request: Request) -> str:
        after(request.name or "").wait(timeout=1)  # until the one before it waits
        return after(follows(request.name or "")).prompt("hi").get().text

    with simulated() as world:
        system = world.open(FunctionProvider(act))
        agents = [system.root.fork(name=name) for name in names]
        with pytest.raises(ProviderError, match=" waits for ".join([names[-1], *names])):
            agents[0].prompt("go").get()
        assert set(system.root.wait(agents).values()) == {WaitResult.IDLE}
        assert [agent.statistics().restarts for agent in agents] == [0] * len(names)


def after(name: str) -> AgentRef:
    """The agent of a name, in the system of the code that runs."""
    me = current_agent()
    assert isinstance(me, AgentRef)
    return me.system.agent(name)


@pytest.mark.slow("takes a tenth of a second")
def test_two_coroutines_that_await_each_other_in_tools_are_told_so() -> None:
    @tool
    async def ask(name: str) -> str:
        return (await after(name).aio.prompt("hi")).text

    def model(request: Request) -> Any:
        if request.messages[-1]["content"][0]["type"] == "tool_result":
            return results(request)[0].content
        return calling(("ask", {"name": following("ab")(request.name or "")}))

    with simulated() as world:
        system = world.open(ScriptedProvider(model), tools=[ask])
        a, b = system.root.fork(name="a"), system.root.fork(name="b")
        text = a.prompt("go").get().text
        assert "WouldDeadlock: " in text
        assert "b waits for a waits for b" in text or "a waits for b waits for a" in text
        assert system.root.wait([a, b]) == {a: WaitResult.IDLE, b: WaitResult.IDLE}


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "a schedule each")
@pytest.mark.parametrize("seed", range(4))
def test_models_that_wait_for_each_other_by_call_are_told_so(seed: int) -> None:
    def model(request: Request) -> Any:
        if request.messages[-1]["content"][0]["type"] == "tool_result":
            return results(request)[0].content
        return calling(("wait", {"agents": [following("ab")(request.name or "")]}))

    with simulated(seed) as world:
        system = world.open(ScriptedProvider(model))
        a, b = system.root.fork(name="a"), system.root.fork(name="b")
        turns = [a.prompt("go"), b.prompt("go")]
        texts = [turn.get().text for turn in turns]
        assert sum("waits for" in text for text in texts) == 1
        assert sum('"idle"' in text for text in texts) == 1


@pytest.mark.slow("takes a tenth of a second")
def test_a_call_of_wait_lets_its_agent_fork_and_so_is_no_circle_with_a_fork() -> None:
    def model(request: Request) -> Any:
        if request.name == "b":
            return "b has a child" if "child" in (after("a").fork(name="child").name or "") else "none"
        return (
            "fine"
            if request.messages[-1]["content"][0]["type"] == "tool_result"
            else calling(("wait", {"agents": ["b"]}))
        )

    def act(request: Request) -> Any:
        return model(request)

    with ActorSystem.open(":memory:", ScriptedProvider(model), {"code": FunctionProvider(act)}) as system:
        a, b = system.root.fork(name="a"), system.root.fork(name="b", model="code")
        waiting, asked = a.prompt("go"), b.prompt("go")
        assert asked.get(timeout=DEADLINE).text == "b has a child"
        assert waiting.get(timeout=DEADLINE).text == "fine"


@pytest.mark.slow("takes a tenth of a second")
def test_mail_that_ends_a_wait_makes_no_circle_with_it() -> None:
    """Each sends the other a mail, and waits for one: a talk, in which each wait ends by mail."""
    rounds = 8

    def act(request: Request) -> str:
        other = after(following("ab")(request.name or ""))
        me = after(request.name or "")
        for number in range(rounds):
            if request.name == "a":
                me.send(other, f"{number}")
            while not me.read_mail(sender=other):
                me.wait([other], timeout=DEADLINE)
            if request.name == "b":
                me.send(other, f"{number}")
        return "talked"

    with ActorSystem.open(":memory:", FunctionProvider(act)) as system:
        turns = [system.root.fork(name=name).prompt("go") for name in "ab"]
        assert [turn.get(timeout=DEADLINE).text for turn in turns] == ["talked", "talked"]


def test_a_tool_whose_time_is_over_keeps_nobody_waiting() -> None:
    """Its thread still waits for b, but its agent does not: so b may wait for that one."""
    entered, leave, gone_on = threading.Event(), threading.Event(), threading.Event()

    @tool(timeout=0.01)
    def ask() -> str:
        return after("b").prompt("hi").get().text

    def model(request: Request) -> Any:
        if request.messages[-1]["content"][0]["type"] != "tool_result":
            return calling("ask")
        gone_on.set()
        return "went on"

    def act(request: Request) -> str:
        if request.messages[-1]["content"][0]["text"] == "first":
            entered.set()
            assert leave.wait(DEADLINE)
            return after("a").prompt("and you?").get().text
        return "b"

    with ActorSystem.open(":memory:", ScriptedProvider(model), {"code": FunctionProvider(act)}, tools=[ask]) as system:
        a, b = system.root.fork(name="a"), system.root.fork(name="b", model="code")
        first = b.prompt("first")
        assert entered.wait(DEADLINE)
        assert a.prompt("go").get(timeout=DEADLINE).text == "went on"
        leave.set()
        assert first.get(timeout=DEADLINE).text == "went on"


def test_the_state_of_an_agent_says_for_whom_it_waits() -> None:
    with simulated() as world:
        late = ScriptedProvider([Stream(("late",), delay=60)])
        system = world.open(FunctionProvider(lambda _: after("b").prompt("hi").get().text), {"late": late})
        a, b = system.root.fork(name="a"), system.root.fork(name="b", model="late")
        asked = a.prompt("go")
        world.settle()
        assert (a.state, a.statistics().state) == ("waits for b", "waits for b")
        assert (b.state, system.root.state) == ("waiting for the model", "idle")
        assert asked.get().text == "late"
        assert a.state == "idle"


def play(seed: int) -> tuple[str, list[str]]:
    """Three agents that prompt and wait in circles, with whatever chance does: the trace, and how the turns end."""

    def act(request: Request) -> str:
        me, other = after(request.name or ""), after(following("abc")(request.name or ""))
        if request.name == "b":
            return str(me.wait([other]))
        return other.prompt("hi").get().text

    with simulated(seed) as world:
        system = world.open(FunctionProvider(act))
        agents = [system.root.fork(name=name) for name in "abc"]
        ends = list[str]()
        for turn in [agent.prompt("go") for agent in agents]:
            try:
                ends.append(turn.get().text)
            except ProviderError as error:
                ends.append(str(error))
        system.root.wait(agents)
        return str(world.trace), ends


@pytest.mark.thorough("the same circle in a simulation")
@pytest.mark.slow("takes half a second")
def test_a_circle_in_a_simulation_ends_the_same_way_each_time() -> None:
    runs = [play(seed) for seed in range(2)]
    assert [play(seed) for seed in range(2)] == runs
    for _, ends in runs:
        assert any(" waits for " in end for end in ends)
