"""What becomes of a line, or of a key, that cannot be done: it is told, and everything else goes on."""

import threading
from collections.abc import Callable
from functools import partial

import pytest

from ikigai_actors import SystemClosed
from ikigai_actors.errors import IkigaiError
from ikigai_actors.shell.app.application import Application
from ikigai_actors.shell.app.output import Toast
from ikigai_actors.shell.app.place import AppPlace, SerialExecutor
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.blocking_provider import DEADLINE, Gate


@pytest.mark.thorough("another play of an agent that dies; a closed system is in every run")
def test_a_prompt_that_waits_when_its_agent_dies_is_shown_no_longer_and_the_error_is() -> None:
    gate = Gate()

    async def play(stage: Stage) -> None:
        await stage.say("one")
        await stage.expect("› one")
        await stage.say("two")
        await stage.expect("… two")
        kid.kill(reason="enough")
        await stage.expect(r"is dead \(enough\)")
        await stage.say(f"/switch {kid.uuid}")
        await stage.expect(r"[─▸] kid ─")
        await stage.expect("✗ .*dead")
        await stage.expect_gone("… two")
        gate.open()

    with open_memory(gate.provider) as system:
        kid = system.root.fork(name="kid")
        system._touch(kid)
        on_stage(system, play)


@pytest.mark.thorough("another play of an agent that dies; a closed system is in every run")
def test_a_key_for_an_agent_that_is_dead_does_nothing_and_the_next_ones_work() -> None:
    async def play(stage: Stage) -> None:
        await stage.say(f"/switch {kid.uuid}")
        await stage.expect(r"× dead[\s\S]*[─▸] kid ─")
        await stage.press("escape")
        await stage.say("hello")
        await stage.expect("✗ .*dead")
        await stage.press("ctrl+up")
        await stage.until(lambda: stage.current == stage.system.root.uuid)

    with open_memory() as system:
        kid = system.root.fork(name="kid")
        kid.kill()
        on_stage(system, play)


@pytest.mark.parametrize("line", ["hello", "/mark here"])
def test_a_line_for_a_closed_system_ends_the_executor_and_is_not_told_twice(line: str) -> None:
    lines: list[str] = []
    ended: list[IkigaiError] = []
    closed = threading.Event()

    def end(error: IkigaiError) -> None:
        ended.append(error)
        closed.set()

    with open_memory() as system:
        application = Application(system)  # which never runs: it is only asked what a window is asked
        context = AppPlace(application, system.root, Toast(lines.append))
    executor = SerialExecutor(end)
    executor.do(partial(context.do, line))
    executor.do(partial(lines.append, "more"))
    assert closed.wait(DEADLINE)
    assert [type(error) for error in ended] == [SystemClosed]
    assert not lines
    application.events.close()
    application._serial.close()


def test_the_application_runs_beside_the_main_thread() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("hello")
        await stage.expect("› hello")
        await stage.expect("You said “hello”")

    failed: list[BaseException] = []

    def attempt(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # is told on the main thread
            failed.append(error)

    with open_memory() as system:
        thread = threading.Thread(target=attempt, args=(lambda: on_stage(system, play),))
        thread.start()
        thread.join(DEADLINE * 3)
        assert not failed
        assert not thread.is_alive()
        assert [message.kind for message in system.root.history()] == ["user", "assistant"]
