"""Pastes among the characters from a terminal. Pure: characters in, characters out.

A terminal sends a paste between two marks, unchanged. Textual takes an escape sequence within it for pressed keys, an
Enter among them. So the escape characters between the marks are spelled out here.

The second mark may be lost, for example if a connection breaks. Then everything that a person types would belong to the
paste and stay invisible. So if nothing has arrived for a while, the paste ends before the next key.
"""

START, END = "\x1b[200~", "\x1b[201~"

END_LOST = 2.0
"""Seconds of silence during a paste after which a single key counts as typed: the paste's end mark was lost."""

_LONGEST_KEY = 8
"""The most characters of a key's escape sequence."""

_ESCAPE = "\\x1b"


class Pastes:
    """Makes pastes harmless; other characters pass unchanged and at once."""

    def __init__(self) -> None:
        self._inside = False
        self._seen = ""  # how the mark that is looked for begins, as far as it has come

    def feed(self, text: str, quiet: float = 0.0) -> str:
        """Return the next characters to pass on.

        A possible beginning of a paste's end mark is kept until the rest comes.

        Args:
            text: the characters that came.
            quiet: seconds without input before them.
        """
        pieces: list[str] = []
        if self._inside and quiet >= END_LOST and self._is_key(text):
            self._inside, self._seen = False, ""
            pieces.append(END)
        while text:
            text = self._within(text, pieces) if self._inside else self._outside(text, pieces)
        return "".join(pieces)

    def _is_key(self, text: str) -> bool:
        """Return whether these characters are one key, and not the beginning of the end mark."""
        of_a_key = len(text) == 1 or (text.startswith("\x1b") and len(text) <= _LONGEST_KEY)
        return of_a_key and not END.startswith(self._seen + text) and not text.startswith(END)

    def _outside(self, text: str, pieces: list[str]) -> str:
        """Pass on everything up to the start of a paste; return the rest."""
        before, self._seen = self._seen, ""
        at = (before + text).find(START)
        if at >= 0:
            self._inside, end = True, at + len(START) - len(before)
            pieces.append(text[:end])
            return text[end:]
        self._seen = _begun(before + text, START)
        pieces.append(text)
        return ""

    def _within(self, text: str, pieces: list[str]) -> str:
        """Pass on a paste up to its end; return the rest."""
        text, self._seen = self._seen + text, ""
        pasted, mark, rest = text.partition(END)
        if mark:
            self._inside = False
            pieces.append(pasted.replace("\x1b", _ESCAPE) + mark)
            return rest
        self._seen = _begun(text, END)
        pieces.append(text[: len(text) - len(self._seen)].replace("\x1b", _ESCAPE))
        return ""


def _begun(text: str, mark: str) -> str:
    """Return the longest end of a text that is a beginning of the mark."""
    return next((mark[:length] for length in range(len(mark) - 1, 0, -1) if text.endswith(mark[:length])), "")
