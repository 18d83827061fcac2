"""The application in a narrow window, and what it says of an agent that takes no prompt."""

import asyncio
import signal

import pytest

from ikigai_actors import Signal
from ikigai_actors.shell.app.application import Application
from ikigai_actors.shell.line.interrupts import Interrupts
from tests.kit.app_pilot import Stage, on_stage, open_memory


def test_in_a_narrow_window_the_bar_keeps_the_state_and_says_that_there_is_more() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect(r"─ ↑[^\n]*… [^\n]*stopped …|─ ↑[^\n]*stopped …")
        stage.system.agent("someone-with-a-name").signal(Signal.CONT)
        await stage.expect(r"─ ↑[^\n]*idle …")

    with open_memory() as system:
        agent = system.root.fork(name="buyer-of-all-tea").fork(name="someone-with-a-name")
        agent.signal(Signal.STOP)
        system._touch(agent)
        on_stage(system, play, size=(40, 10))


@pytest.mark.parametrize("size", [(40, 10), (80, 24)])
def test_every_key_can_be_read_with_what_it_does(size: tuple[int, int]) -> None:
    async def play(stage: Stage) -> None:
        seen = ""
        await stage.press("f1")
        await stage.expect("Enter, Ctrl\\+J")
        for _ in range(60):
            seen += stage.text
            await stage.press("down")
            await stage.pilot.pause(0)
        for told in ("A new line|a new line", "Fold results", "/help lists the commands"):
            assert any(each in seen for each in told.split("|")), told

    with open_memory() as system:
        on_stage(system, play, size=size)


def test_what_a_dead_agent_is_told_stays_in_the_prompt() -> None:
    async def play(stage: Stage) -> None:
        await stage.say(f"/switch {kid.uuid}")
        await stage.expect(r"\[kid\]")
        await stage.say("remember the milk")
        await stage.expect("✗ .*is dead")
        await stage.until(lambda: stage.application.main.page.prompt.text == "remember the milk")
        assert "› remember" not in stage.text

    with open_memory() as system:
        kid = system.root.fork(name="kid")
        kid.kill()
        on_stage(system, play)


def test_a_signal_that_came_before_the_application_ends_it_at_once() -> None:
    interrupts = Interrupts()
    interrupts._note(signal.SIGINT, None)

    async def run() -> Application:
        application = Application(system, interrupts=interrupts)
        async with application.run_test():
            pass
        return application

    with open_memory() as system:
        assert asyncio.run(run()).return_value == 130
