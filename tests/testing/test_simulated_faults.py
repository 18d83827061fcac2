"""Faults of a simulation: each happens, is named in the trace, and the runtime bears it."""

import asyncio
from contextlib import nullcontext
from dataclasses import replace

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    IkigaiError,
    Reply,
    ScriptedProvider,
    Signal,
    StoreError,
    ToolCall,
    tool,
)
from ikigai_actors.testing import Broken, CrashPoint, Faults, ProcessCrashed, Schedule, Simulation, TakenOver, simulated
from tests.kit.echo import echo, kinds
from tests.kit.programs import cheaper

pytestmark = pytest.mark.slow("a run for each fault")


def prompted(world: Simulation) -> tuple[ActorSystem, AgentRef]:
    """A system with an agent that can be prompted."""
    system = world.open(ScriptedProvider(echo))
    return system, system.root.fork(name="anna")


def fault_of(world: Simulation) -> str:
    return ", ".join(line.text for line in world.trace.lines if line.kind == "fault")


@pytest.mark.sample(1, "a run for each choice")
@pytest.mark.parametrize("name", ["busy", "full", "lost", "unheard", "unanswered", "ahead", "back"])
@cheaper("choices", range(0, 13, 6), range(0, 40, 3), "a fault at more of the choices")
def test_a_fault_of_the_store_or_the_clock_leaves_the_same_history(choices: range, name: str) -> None:
    def run(faults: Faults, schedule: Schedule) -> tuple[str, list[str], int]:
        with simulated(schedule, faults=faults) as world:
            _, anna = prompted(world)
            assert anna.prompt("hello").get().text == "hello / 1"
            anna.mark("here")
            return fault_of(world), kinds(world.reopen().agent("anna").history()), len(world.requests)

    plain = run(Faults(), Schedule({}))
    seen = set()
    for number in choices:
        history, *rest = run(Faults(**{name: 1}), Schedule({number: 1}))
        assert tuple(rest) == plain[1:]
        seen.add(history)
    assert seen == {"", name}


@pytest.mark.thorough("a second play of a fault")
@cheaper("step", 7, 3, "an outage at more of the choices")
def test_while_nothing_can_be_read_who_needs_it_hears_so_and_goes_on_when_it_can_be(step: int) -> None:
    seen = set()
    for number in range(0, 40, step):
        with simulated(Schedule({number: 1}), faults=Faults(unreadable=1)) as world:
            system, _ = prompted(world)
            root = system.root
            children = [root.fork(f"part {part}") for part in range(3)]
            answers = []
            for child in children:
                try:
                    answers.append(child.reply().text)
                except StoreError as error:
                    answers.append(str(error))
            results = root.wait(children, timeout=60)
            assert all(results.values())
            world.sleep(5)
            assert children[0].prompt("again").get().text.startswith("again")
            seen.add((fault_of(world), "refused" if any("cannot be read" in answer for answer in answers) else "read"))
    assert {("", "read"), ("unreadable", "read")} <= seen


def test_a_host_that_was_taken_over_from_changes_nothing_any_more() -> None:
    with simulated() as world:
        system, anna = prompted(world)
        reply = anna.prompt("hello")
        while not world.requests:
            world.agenda.step()
        again = world.take_over()
        world.settle()
        with pytest.raises(IkigaiError, match="Another host"):
            reply.get()
        with pytest.raises(IkigaiError):
            anna.mark("too late")
        assert kinds(again.agent("anna").history()) == ["fork", "user"]
        assert [agent.uuid for agent in again.resume()] == [anna.uuid]
        assert again.agent("anna").reply().text == "hello / 1"
        assert len(world.requests) == 2
        assert "takeover" in {line.kind for line in world.trace.lines}
        assert again is not system


def test_a_host_that_is_not_fenced_though_another_has_come_is_found() -> None:
    with simulated() as world:
        _, anna = prompted(world)
        first = world.process
        world.take_over()
        first.store.write(lambda tx: tx.append([(anna.uuid, 2, "mark", "x", "{}", 1, b"")]))
        with pytest.raises(Broken, match="fenced: "):
            world.settle()
        world.checks = False


@cheaper("choices", range(5, 9), range(40), "a takeover at more of the choices")
def test_a_takeover_happens_in_the_midst_of_a_turn_and_the_other_host_goes_on_with_it(choices: range) -> None:
    outcomes = set()
    for number in choices:
        with simulated(Schedule({number: 1}), faults=Faults(takeovers=1)) as world:
            try:
                _, anna = prompted(world)
                anna.prompt("hello").get()
            except TakenOver:
                world.recover()
            if any(record.name == "anna" for record in world.system.agents()):
                history = world.system.agent("anna").history()
                outcomes.add((fault_of(world), *kinds(history)))
    assert ("takeovers", "fork", "user", "assistant") in outcomes
    assert ("", "fork", "user", "assistant") in outcomes
    assert all(of[1:] in {("fork",), ("fork", "user", "assistant")} for of in outcomes)


@pytest.mark.sample(2, "a host ends at each commit")
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("commit", range(1, 6))  # the claim, agent 0, a fork, a prompt, a reply
def test_a_crash_point_is_where_the_process_ends(commit: int, committed: bool) -> None:
    with simulated(crash=CrashPoint(commit, committed)) as world:
        with pytest.raises(ProcessCrashed):
            prompted(world)[1].prompt("hello").get()
        assert world.commits == commit - (0 if committed else 1)
        world.recover()
        for record in world.system.agents():
            assert not record.turn


@pytest.mark.parametrize("checks", [True, False])
def test_a_request_that_the_api_would_not_take_is_found_unless_nobody_looks(checks: bool) -> None:
    with simulated() as world:
        _, anna = prompted(world)
        anna.prompt("hello")
        while not world.requests:
            world.agenda.step()
        world.checks = checks
        world.process.asked(replace(world.requests[0], messages=()))
        with pytest.raises(Broken, match=f"requests-valid: agent {anna.uuid}") if checks else nullcontext():
            world.settle()


def test_a_request_that_is_interrupted_on_its_way_never_arrives(caplog: pytest.LogCaptureFixture) -> None:
    seen = set()
    for number in range(0, 9, 3):
        provider = ScriptedProvider(echo)
        with simulated(Schedule({number: 1, number + 2: 1})) as world:
            root = world.open(provider).root
            root.prompt("hello")
            while not world.requests:
                world.agenda.step()
            root.signal(Signal.INT)
            world.settle()
            assert kinds(root.history())[1:] in (["interrupted"], ["assistant"])
            seen.add(len(provider.requests))
    assert seen == {0, 1}
    assert not caplog.records  # the loop has nothing to complain of


def test_a_tool_on_the_event_loop_is_told_of_and_runs() -> None:
    @tool
    async def weather(city: str) -> str:
        """Tell the weather of a city."""
        await asyncio.sleep(3)
        return f"rain in {city}"

    asks = Reply(tool_calls=(ToolCall("weather", {"city": "Kyiv"}),))
    with simulated() as world:
        began = world.clock.monotonic()
        root = world.open(ScriptedProvider([asks, "done"]), tools=[weather]).root
        assert root.prompt("go").get().text == "done"
        assert world.clock.monotonic() == began + 3
        assert [message.content for message in root.history() if message.kind == "tool_result"] == ["rain in Kyiv"]
        assert "weather {'city': 'Kyiv'}" in [line.text for line in world.trace.lines if line.kind == "tool"]


def test_a_crash_point_before_the_first_commit_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected commit to be a whole number from 1 on"):
        CrashPoint(0)
