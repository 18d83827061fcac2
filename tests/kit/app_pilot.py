"""The application on a screen that a test reads, and a keyboard that a test plays."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

from textual._context import visible_screen_stack
from textual.drivers.headless_driver import HeadlessDriver
from textual.events import Key, Resize
from textual.geometry import Size
from textual.message import Message
from textual.notifications import Notify
from textual.pilot import Pilot

from ikigai_actors import ActorSystem, AgentRef, OfflineProvider
from ikigai_actors.providers.base import Provider
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.shell.app.application import Application
from ikigai_actors.system.handles.ref import System

DEADLINE = 60.0
"""Seconds after which what should be shown has failed to be."""

_NAMES = {"\n": "ctrl+j", " ": "space", "/": "slash"}

Play = Callable[["Stage"], Awaitable[None]]
"""What a test does."""


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Stage:
    """The application, running."""

    def __init__(self, application: Application, pilot: "Pilot[Any]", noticed: list[str], watch: Watch) -> None:
        self.application, self.pilot, self.watch = application, pilot, watch
        self.system = application.system
        self._noticed = noticed

    @property
    def text(self) -> str:
        """What the screen shows."""
        # A screen that is drawn without those below it has a blank ground, and keeps it until it is drawn again.
        visible_screen_stack.set(self.application._background_screens)
        strips = self.application.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    @property
    def transcript(self) -> str:
        """All that is laid out of the current agent's transcript, in sight or not."""
        return self.application.main.page.transcript.text

    @property
    def current(self) -> str:
        """The uuid of the current agent."""
        return self.application.main.page.agent.uuid

    async def press(self, *keys: str) -> None:
        """Press keys, by name; each is done before the next. (The pilot's `press` waits until the whole process has
        nothing to do, which beside streaming agents may take a second for each key.)
        """
        for key in keys:
            await self._send(Key(key, key if len(key) == 1 else None))

    async def type(self, text: str) -> None:
        """Type a text, fast; a newline makes a new line. All of it is done."""
        await self._send(*(Key(_NAMES.get(sign, sign), sign) for sign in text))

    async def say(self, text: str) -> None:
        """Type a text and press Enter."""
        await self.type(text)
        await self.press("enter")

    async def resize(self, columns: int, lines: int) -> None:
        """Give the window another size. (The pilot's own waits until the whole process has nothing to do.)"""
        driver, size = self.application._driver, Size(columns, lines)
        assert isinstance(driver, HeadlessDriver)
        driver._size = size
        self.application.post_message(Resize(size, size))
        await self.until(lambda: self.application.screen.size == size, "the new size")
        await self.pilot.pause(0)

    async def until(self, condition: Callable[[], object], what: str = "it") -> None:
        """Let the application go on until something is the case.

        Between two looks it waits longer and longer: to read the screen takes the time of drawing it.
        """
        deadline, pause = time.monotonic() + DEADLINE, 0.01
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not come:\n{self.text}"
            await asyncio.sleep(pause)  # to other tasks, the application's
            pause = min(1.4 * pause, 0.1)

    async def expect(self, pattern: str) -> None:
        """Wait until the screen shows this."""
        await self.until(lambda: re.search(pattern, self.text), repr(pattern))

    async def expect_notice(self, text: str) -> None:
        """Wait until this was noted for a while; the screen may show it no more."""
        await self.until(lambda: any(text in notice for notice in self._noticed), repr(text))

    async def expect_gone(self, pattern: str) -> None:
        """Wait until the screen shows this no more."""
        await self.until(lambda: not re.search(pattern, self.text), f"the end of {pattern!r}")

    async def _send(self, *keys: Key) -> None:
        """Return when the last one is done: it goes to the widget with the focus and, until one takes it, on to the one
        above; each has its turn in one pause at the latest.
        """
        focused = self.application.focused or self.application.screen
        for key in keys:
            self.application.post_message(key)
        await self.pilot.pause(0)
        for _ in focused.ancestors_with_self if keys[-1].is_forwarded else ():
            if not keys[-1]._stop_propagation:
                await self.pilot.pause(0)
        await self.pilot.pause(0)


def short(agent: AgentRef) -> str:
    """How an agent without a name is called."""
    return words_of(agent.uuid)


def open_memory(provider: Provider | None = None, database: str = "sqlite:///:memory:", **options: Any) -> ActorSystem:
    """A system; the offline provider answers when none is given."""
    return ActorSystem.open(database, provider or OfflineProvider(), **options)


def on_stage(system: System, play: Play, size: tuple[int, int] = (80, 24), **options: Any) -> Application:
    """Run the application for the length of a play; returns it, ended."""

    noticed: list[str] = []

    def hear(message: Message) -> None:
        if isinstance(message, Notify):
            noticed.append(message.notification.message)

    async def run() -> Application:
        watch = Watch()
        application = Application(system, clock=watch, **options)
        async with application.run_test(size=size, notifications=True, message_hook=hear) as pilot:
            stage = Stage(application, pilot, noticed, watch)
            await stage.until(lambda: application.main.snapshot, "the first snapshot")
            await stage.expect(r"╭─ (?!starting …)")
            await play(stage)
        return application

    return asyncio.run(run())
