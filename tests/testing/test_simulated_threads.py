"""Threads of a simulation: those of a test, those of the runtime, and how they end with their process."""

import asyncio

import pytest

from ikigai_actors import IkigaiError, Reply, ScriptedProvider, ToolCall, current_agent, tool
from ikigai_actors.actors.futures import may_block
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.testing import Stuck, simulated
from ikigai_actors.testing.simulation.scheduler import Baton
from tests.kit.echo import echo


def test_a_thread_of_the_test_is_one_of_the_simulation() -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider(echo))
        answers, over = current_threads().queue(), current_threads().condition()
        done: list[bool] = []

        def ask() -> None:
            answers.put(system.root.prompt("hello").get().text)
            world.process.threads.sleep(60)
            with over:
                done.append(True)
                over.notify_all()

        thread = current_threads().thread(ask, "mine")
        thread.start()
        assert answers.get() == "hello / 1"
        began = world.clock.monotonic()
        with over:
            assert over.wait_for(lambda: done)
        assert world.clock.monotonic() == began + 60
        thread.join()
        thread.join()  # of one that has ended there is nothing to wait for
        assert answers.qsize() == 0


def test_who_wants_a_lock_waits_until_its_holder_has_what_it_waits_for() -> None:
    with simulated() as world:
        world.open()
        lock, order = current_threads().lock(), list[str]()

        def hold() -> None:
            with lock:
                world.process.threads.sleep(60)
                order.append("first")

        def follow() -> None:
            with lock:
                order.append("second")

        for run in (hold, follow):
            current_threads().thread(run, run.__name__).start()
        world.sleep(30)
        assert order == []
        world.sleep(30)
        assert order == ["first", "second"]


def test_an_asyncio_program_of_the_test_runs_on_a_loop_of_the_simulation() -> None:
    async def program() -> list[str]:
        children = await asyncio.gather(*(system.root.aio.fork(name=name) for name in ("anna", "bert")))
        began = world.clock.monotonic()
        await asyncio.sleep(60)
        assert world.clock.monotonic() == began + 60
        return [(await child.prompt("hello")).text for child in children]

    with simulated() as world:
        system = world.open(ScriptedProvider(echo))
        loop = current_threads().new_event_loop()
        assert loop.run_until_complete(program()) == ["hello / 1"] * 2


def test_what_the_simulation_does_while_a_loop_waits_is_outside_that_loop() -> None:
    seen: list[bool] = []
    with simulated() as world:
        world.open()
        agenda, loop = world.process.threads.agenda, current_threads().new_event_loop()
        agenda.at(world.clock.monotonic() + 30, lambda: seen.append(may_block()), world.process.threads)
        loop.run_until_complete(asyncio.sleep(60))
    assert seen == [True]


def test_code_that_goes_on_after_a_crash_gets_no_further_than_to_where_it_waits() -> None:
    steps: list[str] = []

    @tool
    def wait_for_ever() -> None:
        """Wait for mail, and again when that ends."""
        try:
            steps.append("waits")
            current_agent().wait()
        finally:
            steps.append("waits again")
            try:
                current_agent().wait()
            finally:
                steps.append("ends")

    with simulated() as world:
        system = world.open(
            ScriptedProvider([Reply(tool_calls=(ToolCall("wait_for_ever"),)), "done"]), tools=[wait_for_ever]
        )
        reply = system.root.prompt("go")
        world.settle()
        assert steps == ["waits"]
        world.crash()
        assert steps == ["waits", "waits again", "ends"]
        assert not [line for line in world.trace.lines if line.kind == "result"]
        world.recover()
        assert not reply.done()
        with pytest.raises(IkigaiError):
            system.root.mark()


def test_a_step_that_waits_for_what_is_not_part_of_the_simulation_is_stuck() -> None:
    with pytest.raises(Stuck, match=r"A step took longer than 0\.01 s"):
        Baton().take_soon(0.01)
