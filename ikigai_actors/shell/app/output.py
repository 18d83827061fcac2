"""Prints lines into a transcript, or as a notice that goes away, instead of onto a terminal. Thread-safe."""

from collections.abc import Callable

from ikigai_actors.shell.app.transcript.pieces import Look, tidy
from ikigai_actors.verbs.place import Printer

_TOAST_COLUMNS = 50


class TranscriptPrinter(Printer):
    """Prints the lines of commands into an agent's transcript."""

    def __init__(self, tell: Callable[[str, str, Look], None], uuid: str, columns: Callable[[], int]) -> None:
        self._tell, self._uuid, self._columns = tell, uuid, columns

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        self._tell(self._uuid, text, Look.STRONG if bold else Look.NOTE if dim else Look.TOLD)

    block = whole = line

    def error(self, text: str) -> None:
        self._tell(self._uuid, text, Look.ERROR)

    @property
    def columns(self) -> int:
        return self._columns()


class Toast(Printer):
    """Prints temporary notices instead of transcript lines, for keys whose action failed."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify = notify

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        self._notify(tidy(text))

    block = whole = line

    def error(self, text: str) -> None:
        self._notify(tidy(text))

    @property
    def columns(self) -> int:
        return _TOAST_COLUMNS
