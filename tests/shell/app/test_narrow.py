"""The keys in a narrow window, and what becomes of a prompt to an agent that takes none."""

import asyncio
import signal

import pytest

from ikigai_actors.shell.app.application import Application
from ikigai_actors.shell.line.interrupts import Interrupts
from tests.kit.app_pilot import Stage, on_stage, open_memory


@pytest.mark.thorough("every screen at every width")
def test_every_key_can_be_read_with_what_it_does() -> None:
    async def play(stage: Stage) -> None:
        seen = ""
        await stage.press("f1")
        await stage.expect("Enter, Ctrl\\+J")
        for _ in range(60):
            seen += stage.text
            await stage.press("down")
            await stage.pilot.pause(0)
        for hint in ("A new line|a new line", "Fold results", "/help lists the commands"):
            assert any(each in seen for each in hint.split("|")), hint

    with open_memory() as system:
        on_stage(system, play, size=(40, 10))


@pytest.mark.thorough("screens in a narrow window; one is in every run")
def test_what_a_dead_agent_is_told_stays_in_the_prompt() -> None:
    async def play(stage: Stage) -> None:
        await stage.say(f"/switch {kid.uuid}")
        await stage.expect(r"[─▸] kid ─")
        await stage.say("remember the milk")
        await stage.expect("✗ .*is dead")
        await stage.until(lambda: stage.application.main.page.prompt.text == "remember the milk")
        assert "› remember" not in stage.transcript

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
