"""The simulator: the real system on one agenda. Same choices, same run; crashes lose what was not committed."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis.errors import StopTest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    FunctionProvider,
    IkigaiError,
    Message,
    OfflineProvider,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    Stream,
    TimedOut,
    ToolCall,
    current_agent,
)
from ikigai_actors.calls import Facts
from ikigai_actors.providers.scripted import ScriptedReply
from ikigai_actors.testing import (
    AgentTreeMachine,
    Broken,
    CrashPoint,
    Endless,
    Faults,
    ProcessCrashed,
    Schedule,
    Simulation,
    Stuck,
    simulated,
)
from ikigai_actors.testing.faults import ALL
from ikigai_actors.tools import Result
from tests.echo import echo, kinds


class Post:
    """A tool that blocks: it sends a mail to agent 0."""

    name, timeout, facts, is_async = "post", 5.0, Facts(), False

    def __init__(self) -> None:
        self.runs = 0

    def describe(self) -> Mapping[str, Any]:
        return {"name": self.name, "description": "Send a mail.", "input_schema": {"type": "object"}}

    def call(self, arguments: Mapping[str, Any]) -> Result:
        self.runs += 1
        me = current_agent()
        return Result(str(me.send(me.system.root, "from a tool")))

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        return self.call(arguments)


def answer(request: Request) -> ScriptedReply:
    said = str(request.messages[-1]["content"][-1].get("text"))
    if "tools" in said:
        return Reply(tool_calls=(ToolCall("post"), ToolCall("fork", {"prompt": "sub"}), ToolCall("post")))
    return Stream(("a", "b")) if "stream" in said else f"{len(request.messages)} messages"


def worker(request: Request) -> str:
    """Blocks in calls of the runtime: makes a child and waits for it."""
    child = current_agent().system.root.fork("plain", model="scripted")
    return child.reply(timeout=60).text


def a_bit_of_everything(world: Simulation) -> None:
    """Forks, prompts, tools, streams, workers that block, signals and mail, all at once."""
    system = world.open(ScriptedProvider(answer), {"worker": FunctionProvider(worker, "worker")}, [Post()])
    root = system.root
    agents = [root.fork(text, name=text) for text in ("tools", "stream", "plain")]
    agents.append(root.fork("work", model="worker"))
    replies = [agent.prompt("tools again") for agent in agents[:3]]
    agents[1].signal(Signal.INT)
    agents[2].signal(Signal.TERM)
    for reply in replies:
        try:
            reply.get(timeout=60)
        except IkigaiError as error:
            world.note("test", type(error).__name__)
    agents[0].kill(cascade=True)
    world.settle()


def trace(schedule: Schedule | Random | int, faults: Faults = ALL) -> tuple[str, Schedule]:
    """The trace of a run in which much happens, and the schedule that leads there."""
    with simulated(schedule, faults=faults) as world:
        try:
            a_bit_of_everything(world)
        except ProcessCrashed:
            world.recover()
        except IkigaiError as error:
            world.note("test", type(error).__name__)
        return str(world.trace), world.schedule


def played(seed: int) -> str:
    """The trace of a run of the machine in which every rule that aims is taken, on a bad day."""
    machine = AgentTreeMachine()
    machine.begin(schedule=Schedule.seeded(seed), misfortunes=ALL)
    for who in (0, 0, 1):
        machine.fork(who=who, prompt="go", reply="ok")
    machine.crash_soon(commit=1 + seed % 6, committed=seed % 2 == 0)
    machine.prompt_slow_model(who=1)
    machine.signal(who=1, signal=Signal.INT, spread=False)
    machine.prompt_to_work(who=2)
    machine.crash_twice(who=3, pause=True)
    machine.send_and_read(sender=0, recipient=2, bodies=["a", "b"])
    machine.kill(who=3)
    machine.write_of_earlier_owner(who=1, ours=True)
    machine.take_over(resume=True)
    machine.teardown()
    return str(machine.world.trace)


SEEDS = range(25)


def test_the_same_seed_gives_the_same_trace_byte_for_byte_and_seeds_differ() -> None:
    traces = [trace(seed)[0] for seed in SEEDS]
    assert [trace(seed)[0] for seed in SEEDS] == traces
    assert len(set(traces)) > len(SEEDS) // 2


def test_the_same_seed_gives_the_same_run_of_the_machine_byte_for_byte() -> None:
    traces = [played(seed) for seed in range(8)]
    assert [played(seed) for seed in range(8)] == traces
    assert len(set(traces)) == len(traces)


def test_the_choices_that_a_run_has_drawn_lead_there_again() -> None:
    for seed in range(5):
        for chance in (seed, Random(seed)):
            told, schedule = trace(chance)
            assert trace(Schedule.parse(str(schedule)))[0] == told


PLANTS = {
    "nothing": "str(len(request.messages))",
    "the clock of the machine": "str(time.time_ns())",
    "chance": "str(random.random())",
    "a thread": "str(threading.get_native_id())",
    "the order of hashes": "''.join({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})",
    "an address": "str(id(request))",
}
"""What a model answers with: code, and what it depends on."""


def planted(code: str) -> str:
    """The trace of a run in which a model's answer is what some code gives."""
    with simulated(1) as world:
        names = {"time": time, "random": random, "threading": threading}
        world.open(ScriptedProvider(lambda request: str(eval(code, names, {"request": request}))))
        world.system.root.prompt("go").get()
        return str(world.trace)


def test_no_order_of_hashes_and_no_clock_of_the_machine_decides_anything() -> None:
    """And the same comparison finds each source that a run must not depend on, when it is planted."""
    code = (
        "import hashlib, logging; logging.disable(); from tests.test_simulation import PLANTS, planted, played, trace; "
        "digest = lambda told: hashlib.sha256(told.encode()).hexdigest(); "
        "told = ''.join(trace(seed)[0] + played(seed) for seed in range(6)); "
        "print(digest(told), *map(digest, map(planted, PLANTS.values())))"
    )
    told = []
    for hashes, zone in (("1", "UTC"), ("2", "Asia/Tokyo")):
        environment = {**os.environ, "PYTHONHASHSEED": hashes, "TZ": zone}
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        told.append(run.stdout.split())
    differs = [one != other for one, other in zip(*told, strict=True)]
    assert not differs.pop(0)
    assert [name for name, other in zip(PLANTS, differs, strict=True) if other] == list(PLANTS)[1:]


def test_a_seed_gives_another_order_than_the_plain_one() -> None:
    def order(schedule: Schedule | int) -> list[str]:
        with simulated(schedule) as world:
            system = world.open(ScriptedProvider(echo))
            agents = [system.root.fork(name=name) for name in "abcd"]
            world.settle()
            for reply in [agent.prompt("hello") for agent in agents]:
                reply.get()
            return [request.name or "" for request in world.requests]

    assert order(Schedule({})) == list("abcd")
    assert len({tuple(order(seed)) for seed in range(20)}) > 5


def test_time_passes_only_when_nothing_else_can_happen() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider([Stream(("late",), delay=3_600), "soon"]))
        first = system.root.fork(name="first").prompt("x")
        second = system.root.fork(name="second").prompt("x")
        began = world.clock.monotonic()
        assert second.get().text == "soon"
        assert world.clock.monotonic() == began
        with pytest.raises(TimedOut):
            first.get(timeout=60)
        assert world.clock.monotonic() == began + 60
        assert first.get().text == "late"
        assert world.clock.monotonic() == began + 7_200


def test_a_wait_for_what_can_never_happen_is_an_error_and_does_not_hang() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider(["never"]))
        system.root.signal(Signal.STOP)
        reply = system.root.prompt("hello")
        with pytest.raises(Stuck, match="Nothing can happen any more"):
            reply.get()


def test_agents_that_keep_each_other_busy_are_an_error_and_do_not_hang() -> None:
    again = Reply(tool_calls=(ToolCall("agents"),))
    with pytest.raises(Endless, match="within 300 steps"), simulated(steps=300) as world:
        world.open(ScriptedProvider(lambda request: again)).root.prompt("go").get()


def prompted(world: Simulation) -> tuple[ActorSystem, AgentRef]:
    """A system with an agent that has been prompted."""
    system = world.open(ScriptedProvider(echo))
    return system, system.root.fork(name="anna")


def test_a_crash_before_a_commit_loses_it_and_one_after_it_keeps_what_nobody_was_told_of() -> None:
    for told, expected in ((False, ["fork"]), (True, ["fork", "mark"])):
        with simulated() as world:
            _, anna = prompted(world)
            world.crash_at(CrashPoint(committed=told))
            with pytest.raises(ProcessCrashed):
                anna.mark("here")
            again = world.reopen().agent("anna")
            assert kinds(again.history(all=True)) == expected


def test_every_commit_of_a_turn_can_be_the_last_and_the_turn_goes_on_after_it() -> None:
    number = 0
    while True:
        number += 1
        post = Post()
        with simulated() as world:
            system = world.open(ScriptedProvider(answer), tools=[post])
            anna = system.root.fork(name="anna")
            world.crash_at(CrashPoint(number, committed=number % 2 == 0))
            try:
                anna.prompt("tools").get()
            except ProcessCrashed:
                world.recover()
            else:
                break
            history = world.system.agent("anna").history()
            assert kinds(history)[-1:] in (["assistant"], ["fork"])
            assert post.runs <= 2
    assert number > 8


def test_after_a_crash_nothing_of_the_old_process_goes_on() -> None:
    with simulated() as world:
        _, anna = prompted(world)
        reply = anna.prompt("hello")
        world.crash()
        again = world.reopen()
        world.settle()
        assert not reply.done
        assert [record.name for record in again.agents()] == [None, "anna"]
        assert world.requests == []
        with pytest.raises(IkigaiError):
            anna.mark()


def test_a_restart_keeps_everything() -> None:
    with simulated() as world:
        _, anna = prompted(world)
        anna.prompt("hello").get()
        before = anna.history()
        assert world.reopen().agent("anna").history() == before


@pytest.mark.parametrize(
    ("faults", "outcome"),
    [
        (Faults(errors=1), "ProviderError"),
        (Faults(cuts=1), "ProviderError"),
        (Faults(busy=3), "hello / 1"),
        (Faults(deaf=1), "hello / 1"),
    ],
)
def test_faults_happen_under_some_seeds_and_the_runtime_bears_them(faults: Faults, outcome: str) -> None:
    seen = set()
    for seed in range(30):
        with simulated(seed, faults=faults) as world:
            _, anna = prompted(world)
            try:
                told = anna.prompt("hello").get().text
            except ProviderError as error:
                told = type(error).__name__
            happened = any(line.kind == "fault" for line in world.trace.lines)
            seen.add((happened, told))
    assert (True, outcome) in seen
    assert (False, "hello / 1") in seen


def test_a_slow_tool_times_out_and_the_turn_goes_on() -> None:
    results = set[str]()
    for seed in range(40):
        with simulated(seed, faults=Faults(slow_tools=1)) as world:
            system = world.open(ScriptedProvider([Reply(tool_calls=(ToolCall("post"),)), "done"]), tools=[Post()])
            assert system.root.prompt("go").get().text == "done"
            results.update(message.content for message in system.root.history() if message.kind == "tool_result")
    assert "1" in results
    assert any("did not finish within 5 s" in result for result in results)


class Ending:
    """A source of chance that ends the example after so many draws, as Hypothesis does."""

    def __init__(self, draws: int) -> None:
        self._left = draws

    def randrange(self, stop: int, /) -> int:
        if not self._left:
            raise StopTest(0)
        self._left -= 1
        return self._left % stop


def test_what_chance_raises_goes_to_the_test_wherever_the_run_is() -> None:
    def until_it_ends(draws: int) -> None:
        with simulated(Ending(draws), faults=ALL) as world:
            goes_on: Callable[[Simulation], object] = a_bit_of_everything
            for _ in range(100):
                try:
                    goes_on(world)
                except ProcessCrashed:
                    world.recover()
                world.system.root.prompt("tools")
                goes_on = busy

    def busy(world: Simulation) -> None:
        world.sleep(1)

    for draws in range(0, 120, 7):
        with pytest.raises(StopTest):
            until_it_ends(draws)


def test_an_exception_of_the_test_gets_the_story_the_tree_and_the_line_that_replays_it() -> None:
    def fails() -> None:
        with simulated(1) as world:
            _, anna = prompted(world)
            anna.prompt("hello").get()
            anna.kill(reason="of age")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as failure:
        fails()
    [story] = failure.value.__notes__
    assert "ask     anna: 1 messages, 'hello'" in story
    assert "anna (dead: of age)" in story
    assert story.splitlines()[-1].startswith("Replay: '")


def test_a_database_that_is_not_sound_after_a_commit_fails_the_test() -> None:
    with simulated() as world:
        _, anna = prompted(world)
        world.process.store.write(lambda tx: tx.run("set_turn", uuid=anna.uuid, turn=77))
        with pytest.raises(Broken, match="fsck: turn"):
            anna.mark()
        world.checks = False


def test_a_subscriber_hears_everything_in_order() -> None:
    heard: list[object] = []
    with simulated(3) as world:
        system, anna = prompted(world)
        system.subscribe(heard.append)
        anna.prompt("hello").get()
        world.settle()
    assert [event.kind for event in heard if isinstance(event, Message)] == ["user", "assistant"]


def test_the_fixture_opens_a_simulated_system(simulated_system: Callable[..., ActorSystem]) -> None:
    system = simulated_system(ScriptedProvider(["done"]))
    assert system.root.fork("go").reply().text == "done"


def test_a_world_that_is_used_wrongly_says_what_to_do() -> None:
    with simulated() as world:
        with pytest.raises(AssertionError, match=r"call open\(\)"):
            _ = world.system
        with pytest.raises(AssertionError, match=r"call open\(\)"):
            world.reopen()
        world.open(OfflineProvider())
    with pytest.raises(ValueError, match="Expected crashes to be how many at most"):
        Faults(crashes=-1)
