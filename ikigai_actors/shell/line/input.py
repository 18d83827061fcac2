"""The sources of the shell's input lines: a pipe or a terminal.

`Pipe` reads standard input and prints nothing. `Terminal` shows a prompt, lets the line be edited, and keeps a history
in a file of the user's. While an answer arrives, a terminal takes what is typed without showing it (`hushed`); a line
that is ended meanwhile becomes the next one.

`read` gives a line without its end, or None at the end of input. `read` raises `BadInput` for a line that is no UTF-8,
and `KeyboardInterrupt` at Ctrl-C.
"""

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Protocol

from ikigai_actors.errors import BadInput
from ikigai_actors.verbs.text.harmless import harmless

HISTORY_LENGTH = 1_000
"""The most lines that the history file keeps."""

LONGEST_LINE = 16 * 1024 * 1024
"""The most bytes of a line from a pipe."""

_CTRL_D = "\x04"

Complete = Callable[[str], list[str]]
"""Returns the completions of a line, as whole lines."""


class Keyboard(Protocol):
    """A source of input lines: a pipe, or the keyboard of a terminal."""

    interactive: bool
    """Whether a person types the lines."""
    ahead: bool = False
    """Whether the latest line was typed before the latest `note_ahead`."""

    def read(self, label: str) -> str | None:
        """Return the next line; None at the end of input. The label is part of the prompt."""

    def unfinished(self) -> str:
        """Return the unfinished line that was typed when Ctrl-C came."""

    def descriptor(self) -> int | None:
        """Return the file descriptor that becomes readable when a person types; None if no person types."""

    def consume(self) -> bool:
        """Take the lines that were typed during an answer, for later calls of `read`; False at the end of input."""

    def hushed(self) -> contextlib.AbstractContextManager[None]:
        """Return a block in which typed text is not shown."""

    def note_ahead(self) -> None:
        """Note that the text typed so far was typed before the next output was shown."""
        return

    def untaken(self) -> list[str]:
        """Return the lines that were consumed but not read, because the session ended before."""
        return []


class Pipe(Keyboard):
    """A source of input lines that reads a stream of bytes, in UTF-8."""

    interactive = False

    def __init__(self, stream: BinaryIO | None) -> None:
        self._stream = stream
        self._number = 0

    def read(self, label: str) -> str | None:
        """Return the next line; None at the end of input. No prompt is shown."""
        line = self._stream.readline(LONGEST_LINE) if self._stream is not None else b""
        self._number += 1
        if not line:
            return None
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            self._skip()
            raise BadInput(f"Line {self._number} is longer than {LONGEST_LINE} bytes; it was skipped.")
        try:
            text = line.decode("utf-8-sig" if self._number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise BadInput(
                f"Line {self._number} is not UTF-8 (byte {line[error.start]:#04x} at {error.start + 1}); "
                "it was skipped."
            ) from error
        return text.rstrip("\r\n")

    def _skip(self) -> None:
        assert self._stream is not None  # a line of it was just read
        while (rest := self._stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass

    def unfinished(self) -> str:
        """Return an empty text, because a pipe delivers whole lines."""
        return ""

    def descriptor(self) -> int | None:
        """Return None, because the next line of a pipe is read when the answer is complete."""
        return None

    def consume(self) -> bool:
        """Return False, because nobody types into a pipe."""
        return False

    def hushed(self) -> contextlib.AbstractContextManager[None]:
        """Return a block that does nothing, because a pipe shows no typed text."""
        return contextlib.nullcontext()


class Terminal(Keyboard):
    """A source of input lines at a terminal, edited with the standard library's readline."""

    interactive = True

    def __init__(self, history: Path, complete: Complete, styled: bool = False) -> None:
        """Make the one terminal of this process. The file of typed lines is made readable for its user alone."""
        self._typed: list[str | None] = []
        self._ahead = 0  # how many of them `note_ahead` has found
        self._begun = ""
        self._descriptor = sys.stdin.fileno()
        self._history: Path | None = None
        self._styled = styled
        self._readline: ModuleType | None = None
        try:
            import readline
        except ImportError:  # not on Windows: the console edits lines itself
            return
        self._readline = readline
        readline.set_auto_history(False)
        readline.set_completer_delims("")
        readline.set_completer(lambda _, index: _nth(complete(readline.get_line_buffer()), index))
        readline.parse_and_bind("tab: complete")
        readline.set_history_length(HISTORY_LENGTH)
        self._history = _opened(history, readline)

    def read(self, label: str) -> str | None:
        try:
            with self.end_as_key():
                while not self._typed and self._has_more():
                    self.consume()
                line = self._take_typed(label) if self._typed else self._edited(label)
        except EOFError:
            print()  # end the line of the prompt
            return None
        except UnicodeDecodeError as error:
            raise BadInput(f"A line was not {error.encoding}, and was skipped.") from error
        if line is not None:
            self._remember(line)
        return line

    def note_ahead(self) -> None:
        while self._has_more() and self.consume():
            pass
        self._ahead = len(self._typed)

    def _has_more(self) -> bool:
        return bool(select.select([self._descriptor], [], [], 0)[0])

    def unfinished(self) -> str:
        print()
        return self._readline.get_line_buffer() if self._readline is not None else ""

    def descriptor(self) -> int | None:
        return self._descriptor

    def consume(self) -> bool:
        """Take the lines that were typed while an answer arrived.

        A terminal that edits lines itself delivers one line at a time. Text that was typed before that mode began comes
        in one piece: several lines and the beginning of another, with carriage returns. Ctrl-D arrives as no bytes, or
        within `end_as_key` as a key, and ends the input if it begins a line.
        """
        data = os.read(self._descriptor, 65536)
        if not data:
            self._typed.append(None)
            return False
        typed = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        *lines, self._begun = (self._begun + typed).split("\n")
        for place, line in enumerate(lines):
            if line.startswith(_CTRL_D):
                self._typed += [None, line[1:], *lines[place + 1 :]]
                return False
            self._typed.append(line)
        return True

    def untaken(self) -> list[str]:
        return [line for line in self._typed if line]

    @contextlib.contextmanager
    def hushed(self) -> Iterator[None]:
        try:
            import termios
        except ImportError:
            yield
            return
        before = termios.tcgetattr(self._descriptor)
        quiet = [*before]
        quiet[3] &= ~termios.ECHO
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, quiet)
        try:
            yield
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)

    @contextlib.contextmanager
    def end_as_key(self) -> Iterator[None]:
        """Let readline read Ctrl-D as a key within the block.

        Otherwise a terminal that edits lines itself stores Ctrl-D as an end of input, and sends a NUL byte once
        readline has changed its mode: the end would be lost. A Ctrl-D from before this block is still an end; see
        `consume`.
        """
        try:
            import termios
        except ImportError:
            yield
            return
        try:
            before = termios.tcgetattr(self._descriptor)
        except termios.error:  # the terminal is gone: the next read shows it
            yield
            return
        plain = [*before]
        plain[6] = [*before[6]]
        plain[6][termios.VEOF] = os.fpathconf(self._descriptor, "PC_VDISABLE").to_bytes(1, "big")
        termios.tcsetattr(self._descriptor, termios.TCSANOW, plain)
        try:
            yield
        finally:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, before)

    def _prompt(self, label: str) -> str:
        if not self._styled or self._readline is None:
            return f"{label}> "
        return f"\001\033[1m\002{label}\001\033[0m\002> "  # the marks show readline which characters take no room

    def _edited(self, label: str) -> str:
        """Return a line that the person edits; it begins with the text that was typed while typed text was hidden."""
        self.ahead = False
        if self._readline is None or not self._begun:
            return input(self._prompt(label))
        begun, self._begun, insert = self._begun, "", self._readline.insert_text
        self._readline.set_startup_hook(lambda: insert(begun))
        try:
            return input(self._prompt(label))
        finally:
            self._readline.set_startup_hook(None)

    def _take_typed(self, label: str) -> str | None:
        """Show a line that was typed while typed text was hidden, and return it; None at the end of input."""
        line = self._typed.pop(0)
        self.ahead, self._ahead = self._ahead > 0, max(0, self._ahead - 1)
        print(f"{label}> {harmless(line or '')}")
        return line

    def _remember(self, line: str) -> None:
        """Store a line in the history at once: ``kill -9`` loses none."""
        if self._readline is None or not line.strip():
            return
        length = self._readline.get_current_history_length()
        if length and self._readline.get_history_item(length) == line:
            return
        self._readline.add_history(line)
        if self._history is not None:
            with contextlib.suppress(OSError):
                self._readline.append_history_file(1, self._history)


def _opened(history: Path, readline: ModuleType) -> Path | None:
    """Read or create the history file, and return its path; None if that is impossible, and nothing is kept."""
    try:
        history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(history, os.O_CREAT | os.O_RDWR, 0o600))
        readline.read_history_file(history)
    except OSError:
        return None
    return history


def _nth(texts: list[str], index: int) -> str | None:
    return texts[index] if index < len(texts) else None
