"""A recording: a file that another program has written, line by line. Pure.

Each error names the file and the line. A last line that was cut off, since its writer was killed, is left out.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any, NamedTuple, NoReturn

from ikigai_actors.errors import ImportRefused

LARGEST_FILE = 2**30
"""Bytes of a recording at most."""
LONGEST_RECORDED_LINE = 64 * 2**20
"""Bytes of a line at most."""

_BOM = b"\xef\xbb\xbf"
_LATEST = 253_402_300_800_000  # the year 10,000


@dataclass(frozen=True, slots=True)
class Recording:
    """A file of another program, with its bytes."""

    name: str
    """The path of the file, for errors and for notes in the agents."""
    data: bytes

    @property
    def stem(self) -> str:
        """Return the file's name without folders and without the last suffix."""
        return self.name.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] or self.name

    @property
    def is_cut(self) -> bool:
        """Return whether the last of several lines is cut off, because the writer was killed."""
        before, _, last = self.data.removeprefix(_BOM).strip(b"\r").rpartition(b"\n")
        return bool(last.strip()) and _is_json(before.partition(b"\n")[0]) and not _is_json(last)

    def lines(self) -> Iterator["RecordedLine"]:
        """Yield the non-blank lines, as JSON objects.

        Raises `ImportRefused` for a line that is no JSON object, except a last line that was cut off.
        """
        data = self.data.removeprefix(_BOM)
        start, number = 0, 0
        while start < len(data):
            number += 1
            end = data.find(b"\n", start)
            text, is_whole = data[start : end if end >= 0 else len(data)], end >= 0
            start = end + 1 if is_whole else len(data)
            if len(text) > LONGEST_RECORDED_LINE:
                self.refuse(number, f"expected a line of {LONGEST_RECORDED_LINE // 2**20} MiB at most")
            if not text.strip():
                continue
            try:
                value = parse_json(text)
            except (ValueError, RecursionError) as error:
                if not is_whole:
                    return
                self.refuse(number, f"expected JSON ({error})")
            if not isinstance(value, dict):
                self.refuse(number, "expected a JSON object")
            yield RecordedLine(self, number, value)

    def rows(self) -> Iterator["RecordedLine"]:
        """Yield the JSON objects of the file: one a line, or those of a single JSON value.

        Raises `ImportRefused` as `lines` does.
        """
        data = self.data.removeprefix(_BOM).strip()
        first = data.partition(b"\n")[0]
        if _is_json(first) and not first.startswith(b"["):
            yield from self.lines()
            return
        try:
            value = parse_json(data) if data else []
        except json.JSONDecodeError as error:
            self.refuse(error.lineno, f"expected JSON ({error.msg})")
        except (ValueError, RecursionError) as error:
            self.refuse(1, f"expected JSON ({error})")
        for row in value if isinstance(value, list) else [value]:
            if not isinstance(row, dict):
                self.refuse(1, "expected JSON objects")
            yield RecordedLine(self, 1, row)

    def refuse(self, line: int, problem: str) -> NoReturn:
        """Raise `ImportRefused` for a problem in a line; line 0 means the whole file."""
        where = f"{self.name}, line {line}" if line else self.name
        raise ImportRefused(f"Nothing was imported. {where}: {problem.rstrip('.')}.")


class RecordedLine(NamedTuple):
    """A line of a recording, parsed as a JSON object."""

    of: Recording
    number: int
    """The number of the line, from 1."""
    value: Mapping[str, Any]

    def refuse(self, problem: str) -> NoReturn:
        """Raise `ImportRefused` for a problem in this line."""
        self.of.refuse(self.number, problem)

    def text(self, name: str) -> str:
        """Return the text in a field of the line; empty if there is none."""
        value = self.value.get(name)
        return value if isinstance(value, str) else ""

    def check_content(self, message: Mapping[str, Any]) -> None:
        """Raise `ImportRefused` if the content of a message has a wrong type. It would otherwise get lost silently."""
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if not (content is None or isinstance(content, str | list)) or len(blocks) != len(objects_in(blocks)):
            self.refuse("expected the content of a message to be a text or a list of blocks")
        if any(not isinstance(block.get("text", ""), str) for block in blocks):
            self.refuse("expected the text of a block to be a text")

    def part(self, name: str) -> Mapping[str, Any]:
        """Return the object in a field of the line; empty if there is none."""
        return object_of(self.value.get(name))


def parse_json(text: bytes | str) -> Any:
    """Parse strict JSON, without NaN. Raises `ValueError` and `RecursionError`."""
    return json.loads(text, parse_constant=_no_constant)


def _is_json(text: bytes) -> bool:
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def object_of(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_in(value: object) -> list[Mapping[str, Any]]:
    """Return those items of a list that are objects; empty if the value is no list."""
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []


def count_of(value: object) -> int:
    """Return a value as a number of tokens; 0 if it is no such number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40 else 0


def time_of(value: object) -> int:
    """Return a time in ISO 8601 or as a number in milliseconds since 1970; 0 for any other value."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            value = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError):
            return 0
    if isinstance(value, float):
        value = int(value) if isfinite(value) else 0
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LATEST else 0
