"""The simulator: the real system on one agenda. Crashes lose what was not committed."""

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis.errors import StopTest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    IkigaiError,
    OfflineProvider,
    Reply,
    ScriptedProvider,
    Signal,
    Stream,
    TimedOut,
    ToolCall,
)
from ikigai_actors.testing import (
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
from ikigai_actors.testing.simulation.faults import ALL
from tests.kit.bustle import Post, a_bit_of_everything, answer
from tests.kit.echo import echo, kinds
from tests.kit.programs import cheaper, each_commit


@pytest.mark.thorough("many seeds")
def test_a_seed_gives_another_order_than_the_plain_one() -> None:
    def order(schedule: Schedule | int) -> list[str]:
        with simulated(schedule) as world:
            system = world.open(ScriptedProvider(echo))
            system.root.mark()  # its log is read, so its children have theirs
            agents = [system.root.fork(name=name) for name in "abcd"]
            world.settle()
            for reply in [agent.prompt("hello") for agent in agents]:
                reply.get()
            return [request.name or "" for request in world.requests]

    assert order(Schedule({})) == list("abcd")
    assert len({tuple(order(seed)) for seed in range(10)}) > 3


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
        with pytest.raises(Stuck, match=r"Nothing can happen any more.* by test_simulation.py:\d+: reply.get\(\)"):
            reply.get()


def test_the_story_tells_which_lines_of_the_test_waited_and_by_how_much_mail_was_counted() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider(["hello"]))
        system.send(system.root, "tea")
        assert len(system.root.read_mail()) == 1
        assert system.root.prompt("hello").get().text == "hello"
        story = world.story()
    assert 'system.send(system.root, "tea")' in story
    assert "unread by +1" in story
    assert "unread by -1" in story
    assert 'assert system.root.prompt("hello").get().text == "hello"' in story


@pytest.mark.slow("takes a tenth of a second")
def test_agents_that_keep_each_other_busy_are_an_error_and_do_not_hang() -> None:
    again = Reply(tool_calls=(ToolCall("agents"),))
    with pytest.raises(Endless, match="within 300 steps"), simulated(steps=300) as world:
        world.open(ScriptedProvider(lambda request: again)).root.prompt("go").get()


def prompted(world: Simulation) -> tuple[ActorSystem, AgentRef]:
    """A system with an agent that has been prompted."""
    system = world.open(ScriptedProvider(echo))
    return system, system.root.fork(name="anna")


@pytest.mark.slow("takes a tenth of a second")
def test_a_crash_before_a_commit_loses_it_and_one_after_it_keeps_what_nobody_was_told_of() -> None:
    for is_committed, expected in ((False, ["fork"]), (True, ["fork", "mark"])):
        with simulated() as world:
            _, anna = prompted(world)
            world.crash_at(CrashPoint(committed=is_committed))
            with pytest.raises(ProcessCrashed):
                anna.mark("here")
            again = world.reopen().agent("anna")
            assert kinds(again.history(all=True)) == expected


@pytest.mark.slow("takes a tenth of a second")
@each_commit(6)
def test_every_commit_of_a_turn_can_be_the_last_and_the_turn_goes_on_after_it(step: int) -> None:
    for number in count(1, step):
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
        assert not reply.done()
        assert [record.name for record in again.agents()] == [None, "anna"]
        assert world.requests == []
        with pytest.raises(IkigaiError):
            anna.mark()


class Ending:
    """A source of chance that ends the example after so many draws, as Hypothesis does."""

    def __init__(self, draws: int) -> None:
        self._left = draws

    def randrange(self, stop: int, /) -> int:
        if not self._left:
            raise StopTest(0)
        self._left -= 1
        return self._left % stop


@pytest.mark.slow("takes a tenth of a second")
@cheaper("step", 31, 7, "more moments of a run")
def test_what_chance_raises_goes_to_the_test_wherever_the_run_is(step: int) -> None:
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

    for draws in range(0, 120, step):
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
    with pytest.raises(ValueError, match="Expected crashes to be a whole number from 0 on"):
        Faults(crashes=-1)
