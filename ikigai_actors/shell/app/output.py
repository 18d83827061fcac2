"""Prints lines into a transcript, or as a notice that goes away, instead of onto a terminal. Thread-safe."""

from collections.abc import Callable

from ikigai_actors.shell.app.transcript.pieces import Look, tidy
from ikigai_actors.shell.commands.context import Printer


class TranscriptPrinter(Printer):
    """Prints into an agent's transcript."""

    def __init__(self, tell: Callable[[str, str, Look], None], uuid: str) -> None:
        self._tell, self._uuid = tell, uuid

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        self._tell(self._uuid, text, Look.STRONG if bold else Look.NOTE if dim else Look.TOLD)

    block = line

    def error(self, text: str) -> None:
        self._tell(self._uuid, text, Look.ERROR)


class Toast(Printer):
    """Prints a notice that goes away: what a key could not do is no part of a transcript."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify = notify

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        self._notify(tidy(text))

    block = line

    def error(self, text: str) -> None:
        self._notify(tidy(text))
