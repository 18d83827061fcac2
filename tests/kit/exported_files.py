"""Exported files as a stranger may edit them: records are changed, and the sums of the file are made right again."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ikigai_actors.records.log.chain import EMPTY_HASH, hash_after
from ikigai_actors.records.transfer.format import file_lines

Records = list[dict[str, Any]]


def of(records: Records, kind: str, /, number: int = 0, **fields: Any) -> dict[str, Any]:
    """The record of a kind with this number, of those that have these fields."""
    fitting = [record for record in records if record["record"] == kind and fields.items() <= record.items()]
    return fitting[number]


def put(kind: str, number: int = 0, /, **fields: Any) -> Callable[[Records], object]:
    """Change the fields of a record."""
    return lambda records: of(records, kind, number).update(fields)


def rehash(records: Records) -> None:
    """Give each message that has a hash the one that it should have, as a stranger can who knows the format."""
    forks: dict[str, tuple[str | None, int]] = {
        record["uuid"]: (record.get("parent"), record["fork_message_id"])
        for record in records
        if record["record"] == "agent"
    }
    known: dict[tuple[str | None, int], bytes] = {}
    for record in records:
        if record["record"] != "message" or not isinstance(record.get("hash"), str):
            continue
        holder: str | None = record["agent"]
        while forks.get(str(holder), ("", -1))[1] >= record["id"] - 1 > 0:
            holder = forks[str(holder)][0]
        data = record["data"]
        text = json.dumps(data, separators=(",", ":")) if isinstance(data, dict) else data
        row = (None, record["id"], record["kind"], record["content"], text, record["created_at"])
        made = hash_after(known.get((holder, record["id"] - 1), EMPTY_HASH), row)
        known[record["agent"], record["id"]] = bytes.fromhex(record["hash"]) if record["kind"] == "omitted" else made
        record["hash"] = known[record["agent"], record["id"]].hex()


def signed(records: Records, *, hashes: bool = True) -> bytes:
    """Records as a file whose sums are right; unless ``hashes`` is False, those of its messages too."""
    if hashes:
        with suppress(KeyError, TypeError):  # fields are gone, or of other types
            rehash(records)
    rows = [{key: value for key, value in record.items() if key != "record"} for record in records]
    kinds = [record["record"] for record in records]
    return b"".join(file_lines(zip(kinds[:-1], rows[:-1], strict=True)))


def edit(file: Path, *changes: Callable[[Records], object]) -> None:
    """Change the records of a file."""
    records = [json.loads(line) for line in file.read_bytes().splitlines()]
    for change in changes:
        change(records)
    file.write_bytes(signed(records))
