"""The history of submitted texts, kept in the file that the line mode keeps its history in.

An entry is a line of the file; newlines within an entry are stored as U+2028. Very long entries are not kept.
"""

import contextlib
import os
from pathlib import Path

from ikigai_actors.shell.line.input import HISTORY_LENGTH

_NEWLINE = "\u2028"

_LONGEST = 10_000
"""The most characters of an entry; longer entries are not kept."""


class Recall:
    """The submitted texts, oldest first, and the person's position in them."""

    def __init__(self, path: Path | None) -> None:
        """Read the history file, if it exists; None keeps nothing."""
        self._path = path
        self.entries: list[str] = []
        """All submitted texts, oldest first."""
        if path is not None:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                lines = path.read_text(encoding="utf-8").split("\n")[-HISTORY_LENGTH - 1 :]
                self.entries = [line.replace(_NEWLINE, "\n") for line in lines if line.strip()]
        self._at = len(self.entries)
        self._unsent = ""

    def remember(self, text: str) -> None:
        """Append a text to the file at once, so that a killed process loses none. The position returns to the end."""
        if len(text) <= _LONGEST and (not self.entries or self.entries[-1] != text):
            self.entries.append(text)
            self._write(text)
        self._at = len(self.entries)

    def earlier(self, unsent: str) -> str | None:
        """Move to the next earlier text and return it; None at the oldest.

        `later` returns ``unsent``, the unsubmitted text, at the end.
        """
        if not self._at:
            return None
        if self._at == len(self.entries):
            self._unsent = unsent
        self._at -= 1
        return self.entries[self._at]

    def later(self) -> str | None:
        """Move to the next later text and return it; after the latest, return the unsubmitted text; None at the end."""
        if self._at >= len(self.entries):
            return None
        self._at += 1
        return self._unsent if self._at == len(self.entries) else self.entries[self._at]

    def search(self, text: str) -> list[str]:
        """Return the submitted texts that contain the text, each once, latest first."""
        wanted = text.casefold()
        return list(dict.fromkeys(entry for entry in reversed(self.entries) if wanted in entry.casefold()))

    def _write(self, text: str) -> None:
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                file.write(text.replace("\n", _NEWLINE) + "\n")
