"""Exported files as a stranger may edit them: records are changed, and the sums of the file are made right again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ikigai_actors.records.transfer.format import file_lines

Records = list[dict[str, Any]]


def of(records: Records, kind: str, /, number: int = 0, **fields: Any) -> dict[str, Any]:
    """The record of a kind with this number, of those that have these fields."""
    fitting = [one for one in records if one["record"] == kind and fields.items() <= one.items()]
    return fitting[number]


def put(kind: str, number: int = 0, /, **fields: Any) -> Callable[[Records], object]:
    """Change the fields of a record."""
    return lambda records: of(records, kind, number).update(fields)


def signed(records: Records) -> bytes:
    """Records as a file whose sums are right."""
    rows = [{key: value for key, value in one.items() if key != "record"} for one in records]
    kinds = [one["record"] for one in records]
    return b"".join(file_lines(zip(kinds[:-1], rows[:-1], strict=True)))


def edit(file: Path, *changes: Callable[[Records], object]) -> None:
    """Change the records of a file."""
    records = [json.loads(line) for line in file.read_bytes().splitlines()]
    for change in changes:
        change(records)
    file.write_bytes(signed(records))
