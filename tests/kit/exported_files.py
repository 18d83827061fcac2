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
    fitting = [one for one in records if one["record"] == kind and fields.items() <= one.items()]
    return fitting[number]


def put(kind: str, number: int = 0, /, **fields: Any) -> Callable[[Records], object]:
    """Change the fields of a record."""
    return lambda records: of(records, kind, number).update(fields)


def rehash(records: Records) -> None:
    """Give each message that has a hash the one that it should have, as a stranger can who knows the format."""
    forks: dict[str, tuple[str | None, int]] = {
        one["uuid"]: (one.get("parent"), one["fork_message_id"]) for one in records if one["record"] == "agent"
    }
    known: dict[tuple[str | None, int], bytes] = {}
    for one in records:
        if one["record"] != "message" or not isinstance(one.get("hash"), str):
            continue
        holder: str | None = one["agent"]
        while forks.get(str(holder), ("", -1))[1] >= one["id"] - 1 > 0:
            holder = forks[str(holder)][0]
        data = one["data"]
        text = json.dumps(data, separators=(",", ":")) if isinstance(data, dict) else data
        row = (None, one["id"], one["kind"], one["content"], text, one["created_at"])
        made = hash_after(known.get((holder, one["id"] - 1), EMPTY_HASH), row)
        known[one["agent"], one["id"]] = bytes.fromhex(one["hash"]) if one["kind"] == "omitted" else made
        one["hash"] = known[one["agent"], one["id"]].hex()


def signed(records: Records, *, hashes: bool = True) -> bytes:
    """Records as a file whose sums are right; unless ``hashes`` is False, those of its messages too."""
    if hashes:
        with suppress(KeyError, TypeError):  # fields are gone, or of other types
            rehash(records)
    rows = [{key: value for key, value in one.items() if key != "record"} for one in records]
    kinds = [one["record"] for one in records]
    return b"".join(file_lines(zip(kinds[:-1], rows[:-1], strict=True)))


def edit(file: Path, *changes: Callable[[Records], object]) -> None:
    """Change the records of a file."""
    records = [json.loads(line) for line in file.read_bytes().splitlines()]
    for change in changes:
        change(records)
    file.write_bytes(signed(records))
