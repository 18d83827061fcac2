"""Pastes among the characters from a terminal. Pure: characters in, characters out.

A terminal sends a paste between two marks, unchanged. Textual takes an escape sequence within it for pressed keys, an
Enter among them. So the escape characters between the marks are spelled out here.
"""

START, END = "\x1b[200~", "\x1b[201~"

_ESCAPE = "\\x1b"


class Pastes:
    """Makes pastes harmless; characters outside of them go through at once, unchanged."""

    def __init__(self) -> None:
        self._inside = False
        self._seen = ""  # how the mark that is looked for begins, as far as it has come

    def feed(self, text: str) -> str:
        """The next characters to pass on. The possible beginning of a paste's end mark waits for the rest."""
        given: list[str] = []
        while text:
            text = self._within(text, given) if self._inside else self._outside(text, given)
        return "".join(given)

    def _outside(self, text: str, given: list[str]) -> str:
        """Pass on everything up to the start of a paste; return the rest."""
        before, self._seen = self._seen, ""
        at = (before + text).find(START)
        if at >= 0:
            self._inside, end = True, at + len(START) - len(before)
            given.append(text[:end])
            return text[end:]
        self._seen = _begun(before + text, START)
        given.append(text)
        return ""

    def _within(self, text: str, given: list[str]) -> str:
        """Pass on a paste up to its end; return the rest."""
        text, self._seen = self._seen + text, ""
        pasted, mark, rest = text.partition(END)
        if mark:
            self._inside = False
            given.append(pasted.replace("\x1b", _ESCAPE) + mark)
            return rest
        self._seen = _begun(text, END)
        given.append(text[: len(text) - len(self._seen)].replace("\x1b", _ESCAPE))
        return ""


def _begun(text: str, mark: str) -> str:
    """The longest end of a text with which the mark begins."""
    return next((mark[:length] for length in range(len(mark) - 1, 0, -1) if text.endswith(mark[:length])), "")
