"""The front matter of a Markdown file: keys between two lines ``---``, and the text after them. Pure.

    ---
    name: pdf
    description: Fills forms: use it when a form is to be filled.
    ---
    # Forms

Real files are often no strict YAML: a value may contain an unquoted colon. So this reads the few forms that such files
use, leniently: plain and quoted texts, also over several lines, blocks after ``|`` or ``>``, and lists of texts.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ikigai_actors.errors import BadInput

SKILL_FILE = "SKILL.md"
"""The name of the file that describes a skill."""

Value = str | list[str]

_KEY = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*))?")
_BLOCK = re.compile(r"([|>])[+-]?\d?")


class FrontMatter(NamedTuple):
    """The front matter and the text of a file."""

    keys: Mapping[str, Value]
    body: str
    """The text after the front matter."""

    def text(self, key: str) -> str:
        """Return the text of a key; empty if the key is missing, or its value is no text."""
        value = self.keys.get(key, "")
        return value if isinstance(value, str) else ""

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the texts of a key: a list, or a text that is split at spaces and commas outside of brackets."""
        value = self.keys.get(key, "")
        return tuple(re.findall(r"[^\s,(]+(?:\([^)]*\))?", value) if isinstance(value, str) else value)


def read_front_matter(text: str) -> FrontMatter:
    """Read the front matter of a file's text. Raises `BadInput` if there is none."""
    first, *lines = text.removeprefix("\ufeff").splitlines() or [""]
    end = next((place for place, line in enumerate(lines) if line.rstrip() == "---"), None)
    if first.rstrip() != "---" or end is None:
        raise BadInput("Expected the file to begin with a line ---, then keys, then another line ---.")
    return FrontMatter(_keys(lines[:end]), "\n".join(lines[end + 1 :]).strip())


def _keys(lines: Sequence[str]) -> dict[str, Value]:
    parts: list[tuple[str, str, list[str]]] = []
    for line in lines:
        match = _KEY.fullmatch(line.rstrip())
        if match is not None:
            parts.append((match[1], (match[2] or "").strip(), []))
        elif parts and not (line.startswith("#") and not parts[-1][2]):
            parts[-1][2].append(line)
    return {key: _value(first, rest) for key, first, rest in parts}


def _value(first: str, rest: Sequence[str]) -> Value:
    block = _BLOCK.fullmatch(first.partition(" #")[0].strip())
    if block is not None:
        return _block(rest, folded=block[1] == ">")
    said = [line.strip() for line in rest if line.strip() and not line.lstrip().startswith("#")]
    if not first and said and all(line.startswith("- ") for line in said):
        return [_plain(line[2:].strip()) for line in said]
    if first.startswith("[") and first.endswith("]") and not said:
        return [_plain(part.strip()) for part in first[1:-1].split(",") if part.strip()]
    return _plain(" ".join([first, *said]).strip())


def _block(lines: Sequence[str], folded: bool) -> str:
    text = "\n".join(line.strip() for line in lines).strip()
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text) if folded else text


def _plain(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text if text[:1] in ("'", '"') else re.sub(r"\s+#.*$", "", text)
