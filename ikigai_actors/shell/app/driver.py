"""The keyboard of the application: Textual's driver, with a reader of its own.

Pastes count as text, whatever they contain (pastes.py). Invalid UTF-8 does not end the reading. Text typed before the
screen was shown is passed on (shell/start.py). The terminal's answer about its background is removed from the text.
"""

import os
import select
from codecs import getincrementaldecoder
from collections.abc import Iterable
from time import monotonic
from typing import Any

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from ikigai_actors.shell import start
from ikigai_actors.shell.app.pastes import Pastes
from ikigai_actors.shell.app.terminal import is_gone
from ikigai_actors.shell.ground import Answers, question

_PERIOD = 0.05
"""Seconds between two checks whether the driver is to end, and whether an Escape is a key press by itself."""

_MOST = 65_536
"""The most bytes that are read at once."""


class Ground(Message):
    """The event that the terminal has reported whether its background is light."""

    def __init__(self, light: bool) -> None:
        super().__init__()
        self.light = light


class TerminalDriver(LinuxDriver):
    """The driver of Textual that reads the keyboard of a terminal."""

    _early = True  # whether what waits was typed before the screen was there
    _taken = False  # whether the terminal is ours: False in the middle of taking it or of giving it back

    def start_application_mode(self) -> None:
        """Take over the terminal, and remember its state."""
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual does not say what it returns
        if (before := start.terminal_before()) is not None:
            self.attrs_before: list[Any] | None = before
        self._taken = True

    def write(self, data: str) -> None:
        """Write to the terminal.

        If the screen already shows the first picture, the picture stays until the application draws.
        """
        if data != start.TAKE_SCREEN:
            super().write(data)
        elif not start.screen_is_covered():
            super().write(data + question(os.environ))

    def stop_application_mode(self) -> None:
        """Restore the terminal."""
        self._taken = False
        super().stop_application_mode()

    def _sigcont_application(self, *_: object) -> None:
        """Take the terminal again after a stop.

        SIGCONT also arrives without a stop: after the SIGHUP of a closed window, or from another program. Textual would
        then start a second thread that reads the keyboard, never ends it, and wait for it at the end. So the terminal
        is restored first, and not taken again if it is gone or the application is ending. The method runs on the event
        loop, because the signal handler may have interrupted a thread that holds a needed lock.
        """
        if not self._auto_restart or is_gone(self.fileno):
            return
        if self._taken:
            self._loop.call_soon_threadsafe(self._take_again)
        elif self._must_signal_resume:
            self.resume_application_mode()

    def _take_again(self) -> None:
        if self._taken and not is_gone(self.fileno):
            self.suspend_application_mode()
            self.resume_application_mode()

    def run_input_thread(self) -> None:
        """Read typed text from the terminal until the driver ends, and pass it on as keys and pastes."""
        parser, pastes, self._answers = XTermParser(self._debug), Pastes(), Answers()
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        if self._early:
            self._early = False
            early = start.as_keys(decode(start.typed() + self._read(0)))
            start.forget_typed()
            self._feed(parser, self._without_answer(early))
        heard = monotonic()
        while not self.exit_event.is_set():
            text, now = decode(self._read(_PERIOD)), monotonic()
            self._feed(parser, self._without_answer(pastes.feed(text, now - heard)))
            heard = now if text else heard
            self._tell(parser.tick())

    def _without_answer(self, text: str) -> str:
        """Return the text without the terminal's answer about its background; the application gets the answer."""
        rest, light = self._answers.feed(text)
        if light is not None:
            self.process_message(Ground(light))
        return rest

    def _read(self, seconds: float) -> bytes:
        """Return the bytes that are typed within a time; empty if there are none, or the terminal is gone."""
        if not select.select([self.fileno], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self.fileno, _MOST)
        except OSError:  # the terminal is gone, which the application hears in another way
            data = b""
        if not data:
            self.exit_event.wait(_PERIOD)  # an end that is always ready
        return data

    def _feed(self, parser: XTermParser, text: str) -> None:
        if text:  # an empty text is the end, for the parser
            self._tell(parser.feed(text))

    def _tell(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)
