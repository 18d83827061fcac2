"""Finds out whether the terminal's background is light: the question, and the answer among the typed text. Pure.

A terminal that supports the question (OSC 11) sends its answer among the keys, early, late or in two parts. Other
terminals send nothing, so the program does not wait for the answer.
"""

import re
from collections.abc import Mapping

_BEGINNING = "\x1b]11;"

_ANSWER = re.compile(r"\x1b\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)[0-9a-fA-F/]*(?:\x07|\x1b\\)")

_LONGEST = 40
"""The most characters of an answer. A longer text that begins in the same way is not an answer."""

_WEIGHTS = (0.299, 0.587, 0.114)
"""The weights of red, green and blue in the brightness of a colour."""


def question(environment: Mapping[str, str]) -> str:
    """Return the sequence that asks a terminal for its background; empty if an answer would be useless."""
    return "" if "NO_COLOR" in environment or environment.get("TERM") == "linux" else "\x1b]11;?\x07"


class Answers:
    """Separates the terminal's answer about its background from the typed text."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> tuple[str, bool | None]:
        """Return the next characters to pass on, and whether the background is light; None without an answer.

        The possible beginning of an answer is kept until the rest comes. An empty text means that nothing came.
        """
        text, held, self._held = self._held + text, self._held, ""
        rest, light = without_answer(text)
        if text != held and (begun := _begun(rest)):
            rest, self._held = rest[: -len(begun)], begun
        return rest, light


def without_answer(text: str) -> tuple[str, bool | None]:
    """Return a text without answers, and whether the latest one says that the background is light; None without one."""
    matches = [*_ANSWER.finditer(text)]
    return (_ANSWER.sub("", text), _is_light(matches[-1])) if matches else (text, None)


def _is_light(answer: "re.Match[str]") -> bool:
    parts = (int(part, 16) / ((1 << 4 * len(part)) - 1) for part in answer.groups())
    return sum(weight * part for weight, part in zip(_WEIGHTS, parts, strict=True)) > 0.5


def _begun(text: str) -> str:
    """Return the end of a text that may be the beginning of an answer. A single Escape counts as a key."""
    at = text.rfind("\x1b]")
    end = text[at:] if at >= 0 else ""
    return end if len(end) <= _LONGEST and (_BEGINNING.startswith(end) or end.startswith(_BEGINNING)) else ""
