"""The shell in line mode on a system in memory; what it prints is kept, and what it should not do is told."""

import contextlib
import io
import logging
from collections.abc import Iterator

from ikigai_actors import ActorSystem, IkigaiError
from ikigai_actors.shell.line.input import Pipe
from ikigai_actors.shell.line.interrupts import Interrupts
from ikigai_actors.shell.line.output import Screen
from ikigai_actors.shell.line.repl import LineMode
from ikigai_actors.shell.line.session import Shell


class Defects(logging.Handler):
    """What the library logs of defects of its own: there should be none."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is None:  # news of another kind
            return
        self.found.append(logging.Formatter().format(record))


@contextlib.contextmanager
def no_defects() -> Iterator[None]:
    """Fail at the end of the block when the library has logged a defect of its own in it."""
    heard, logger = Defects(), logging.getLogger("ikigai_actors")
    logger.addHandler(heard)
    try:
        yield
    finally:
        logger.removeHandler(heard)
    assert not heard.found, "\n".join(heard.found)


@contextlib.contextmanager
def refusals_allowed(kind: type[IkigaiError] = IkigaiError, secret: str = "") -> Iterator[list[IkigaiError]]:
    """Errors of ours may end the block, if they say something, and not the secret; they are in the list afterwards."""
    refusals: list[IkigaiError] = []
    try:
        yield refusals
    except kind as error:
        refusals.append(error)
    for refusal in refusals:
        assert str(refusal).strip()
        assert not secret or secret not in f"{refusal} {refusal!r}"


class Typist:
    """Gives lines to a shell, and has what each of them printed."""

    def __init__(self, system: ActorSystem, columns: int | None = None) -> None:
        """Sit down at a terminal so many columns wide, or at a pipe."""
        self.system = system
        self._interrupts = Interrupts()  # not installed: nobody presses Ctrl-C
        self.shell = Shell(system, Pipe(None), Screen(None if columns is None else lambda: columns), self._interrupts)
        self._mode = LineMode(self.shell)

    def __enter__(self) -> "Typist":
        return self

    def __exit__(self, *_: object) -> None:
        with printed():
            self.shell.close()

    def do(self, line: str) -> str:
        """Do a line; what is told in the background before the next one is printed too."""
        with printed() as paper:
            self._mode.do(line)
            self.shell.report()
        return paper.text


class Paper:
    """What was printed, as bytes of UTF-8, which is strict about what it takes."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        self.stream = io.TextIOWrapper(self._bytes, encoding="utf-8", newline="", write_through=True)

    @property
    def text(self) -> str:
        return self._bytes.getvalue().decode()


@contextlib.contextmanager
def printed() -> Iterator[Paper]:
    """What is printed in the block, on standard output and standard error."""
    paper = Paper()
    with contextlib.redirect_stdout(paper.stream), contextlib.redirect_stderr(paper.stream):
        yield paper
