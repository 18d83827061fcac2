"""The format of an exported file: JSON lines, one record each. Pure, except for reading the file.

    {"record":"header","format":5,…}         the format, and the numbers of the records that follow
    {"record":"origin","of":…}               the messages that agents inherit from an agent outside the file, as a log
                                             "origin:…", which is named after one of the heirs
    {"record":"agent",…}                     parents first; the parent of an heir of an origin is "origin:…"; the parent
                                             of agent 0, here or in an earlier database, is null
    {"record":"rule",…}                      the rules in force of the agents in the file
    {"record":"message",…}                   the messages, log by log, each log without a hole
    {"record":"mail",…} {"record":"document",…} {"record":"merge",…}
    {"record":"spending",…}
    {"record":"keyed_call",…}                the keyed calls of agents in the file (`transfer.keys`)
    {"record":"blob",…}
    {"record":"end","lines":…,"sha256":…}    the number and the SHA-256 of all lines before this one

The log of an origin ends with the furthest fork point of its heirs; each heir inherits up to its own fork point. For
each heir the origin's log has the ``fork`` message of the heir's birth: at the position where the parent wrote it, or
after the furthest fork point if the parent wrote it later. An heir that was born in another agent's log (``by``) has no
such message. An origin of pruned agents has no message at all. In format 1 each agent had a separate origin; before
format 3 files had no labels and no costs of requests; before format 4 no rules, and messages no hashes; before format 5
files had no keys.

``hash`` is the hash of the history up to the message (`ikigai_actors.records.log.chain`), in hexadecimal digits. It is
null only for ``fork`` messages after the furthest fork point of an origin, since their positions differ from those in
the parent's log. A message that was left out keeps its original hash.

A file is imported completely or not at all: a newer format, an unknown record or field, a value of another type, and a
changed or missing byte raise `ImportRefused` with the line. ``data`` is a JSON object if encoding this object gives
exactly the text in the database, else the text itself.
"""

import hashlib
import json
import stat
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ikigai_actors.errors import BadInput, ImportRefused, StoreUnusable
from ikigai_actors.records.messages.forms import LARGEST_NUMBER
from ikigai_actors.records.messages.messages import encode_data

FORMAT = 5
"""The version of the format that this program writes. It reads all versions up to this."""

_LATER: Mapping[str, Mapping[str, tuple[int, Any]]] = {
    "agent": {"labels": (3, {}), "pruned_hash": (4, None)},
    "message": {"hash": (4, None)},
}
"""The fields that records have since a version of the format, and the values that those of older files get."""

HASHED = 4
"""The first version of the format whose messages have hashes."""

ORIGIN = "origin:"
"""The prefix of an origin's name, before the uuid of the agent after which it is named."""

Types = tuple[type, ...]
_TEXT: Types = (str,)
_NUMBER: Types = (int,)
_MAYBE_TEXT: Types = (str, type(None))
_MAYBE_NUMBER: Types = (int, type(None))
_DATA: Types = (dict, str, type(None))
_LABELS: Types = (dict,)

RECORDS: Mapping[str, Mapping[str, Types]] = {
    "header": {
        "format": _NUMBER, "program": _TEXT, "schema": _NUMBER, "exported_at": _NUMBER, "top": _TEXT, "counts": (dict,),
        "left_out": (list,),
    },
    "origin": {"of": _TEXT, "outside": _TEXT},
    "agent": {
        "uuid": _TEXT, "name": _MAYBE_TEXT, "parent": _MAYBE_TEXT, "supervisor": _MAYBE_TEXT,
        "fork_message_id": _NUMBER, "born": _NUMBER, "status": _TEXT, "turn": _NUMBER, "restart": _TEXT,
        "exit_reason": _MAYBE_TEXT, "created_at": _NUMBER, "ended_at": _MAYBE_NUMBER, "on_orphan": _TEXT,
        "strategy": _TEXT, "intensity": _NUMBER, "period": _NUMBER, "deadline": _MAYBE_NUMBER,
        "exit_cause": _MAYBE_TEXT, "exit_sender": _MAYBE_TEXT, "spent_tokens": _NUMBER, "spent_usd": _NUMBER,
        "pruned_at": _MAYBE_NUMBER, "pruned_hash": _MAYBE_TEXT, "labels": _LABELS,
    },
    "rule": {
        "agent": _TEXT, "id": _NUMBER, "decision": _TEXT, "tool": _TEXT, "pattern": _TEXT, "scope": _TEXT,
        "created_at": _NUMBER,
    },
    "message": {
        "agent": _TEXT, "id": _NUMBER, "kind": _TEXT, "content": _TEXT, "data": _DATA, "created_at": _NUMBER,
        "hash": _MAYBE_TEXT,
    },
    "mail": {
        "recipient": _TEXT, "id": _NUMBER, "sender": _MAYBE_TEXT, "outside": _MAYBE_TEXT, "kind": _TEXT, "body": _TEXT,
        "created_at": _NUMBER, "read_at": _MAYBE_NUMBER, "data": _DATA,
    },
    "document": {
        "path": _TEXT, "version": _NUMBER, "author": _MAYBE_TEXT, "outside": _MAYBE_TEXT, "body": _MAYBE_TEXT,
        "created_at": _NUMBER,
    },
    "merge": {"into": _TEXT, "from": _TEXT, "from_head": _NUMBER, "message": _NUMBER, "created_at": _NUMBER},
    "spending": {
        "agent": _TEXT, "id": _NUMBER, "labels": _LABELS, "created_at": _NUMBER, "tokens": _NUMBER, "usd": _NUMBER,
    },
    "keyed_call": {
        "scope": _TEXT, "key": _TEXT, "agent": _MAYBE_TEXT, "verb": _TEXT, "asked": _TEXT, "about": _TEXT,
        "gave": (dict,), "created_at": _NUMBER,
    },
    "blob": {"sha256": _TEXT, "media": _TEXT, "bytes": _TEXT},
    "end": {"lines": _NUMBER, "sha256": _TEXT},
}  # fmt: skip
"""All records, in the order in which they come, with the types of their fields. All fields are required."""

LEFT_OUT = ("budgets", "timers", "signals", "restarts", "hosts", "workspaces")
"""Data that are not in a file, as its header says."""

_ORDER = {name: place for place, name in enumerate(RECORDS)}
LONGEST_RECORD = 128 * 2**20
"""The most bytes of a line; the largest attachment needs a quarter of this."""
LONGEST_HEADER = 2**20
"""The most bytes of the first line, from which the format is recognised."""

_LATEST = 253_402_300_800_000
"""The year 10,000, in milliseconds since 1970. Times in a file must be earlier, since calendars end there."""
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Record(NamedTuple):
    """One line of a file."""

    kind: str
    """The kind, a key of `RECORDS`."""
    fields: Mapping[str, Any]
    line: int
    """The number of the line, from 1."""


class RecordFile(NamedTuple):
    """A file of another program, converted to the records that `ikigai export` would have written."""

    path: Path
    records: tuple[Record, ...]


def wrong_line(line: int, problem: str) -> ImportRefused:
    """Return the error for a fault in a line of an exported file."""
    return ImportRefused(f"The file cannot be imported, and nothing of it was: line {line}: {problem.rstrip('.')}.")


def exported_data(text: str | None) -> Any:
    """Return the data of a message or mail for a file: the object, or its text if encoding would change it."""
    if text is None:
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return data if isinstance(data, dict) and encode_data(data) == text else text


def data_text(data: Any) -> str | None:
    """Return the text of a ``data`` column for the data in a file. The inverse of `exported_data`."""
    return encode_data(data) if isinstance(data, dict) else data


def data_object(data: Any) -> dict[str, Any] | None:
    """Return the object in data of a file or column; None if it is no object."""
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            return None
    return data if isinstance(data, dict) else None


def encode_record(kind: str, fields: Mapping[str, Any]) -> bytes:
    """Return a record as a line of an exported file, with the line end."""
    record = {"record": kind, **fields}
    try:
        return _encode(record).encode() + b"\n"
    except UnicodeEncodeError:  # half of a character, in data that a provider sent
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def file_lines(records: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[bytes]:
    """Return records as the lines of a file, with the end record.

    Raises:
        BadInput: a record is too long.
        StoreUnusable: a value in it is no JSON.
    """
    digest, lines = hashlib.sha256(), 0
    for kind, fields in records:
        of = fields.get("agent") or fields.get("recipient") or fields.get("path") or ""
        try:
            line = encode_record(kind, fields)
        except TypeError as error:  # SQLite stores any value in any column
            text = f"A {kind} of {of} has a value of a wrong type. Run ikigai fsck, which names the column."
            raise StoreUnusable(text) from error
        if len(line) > LONGEST_RECORD:
            raise BadInput(
                f"A {kind} of {of} has more than {LONGEST_RECORD // 2**20} MiB, and no import would take it."
            )
        digest.update(line)
        lines += 1
        yield line
    yield encode_record("end", {"lines": lines, "sha256": digest.hexdigest()})


def read_file(path: Path) -> Iterator[Record]:
    """Iterate over the records of a file, without its end, in order. Each is checked, and at the end the whole file.

    Raises:
        ImportRefused: the file has a fault. Records that were read before must not be used then.
        BadInput: the file cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadInput(f"The file {path} cannot be read: it is no regular file, and it is read twice.")
        with path.open("rb") as file:
            yield from read_lines(_lines(file))
    except OSError as error:
        raise BadInput(f"The file {path} cannot be read: {error.strerror or error}.") from error


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Iterate over the lines of a file.

    Raises `ImportRefused` for a line that is too long, without reading all of it.
    """
    for number in count(1):
        longest = LONGEST_HEADER if number == 1 else LONGEST_RECORD
        line = file.readline(longest + 1)
        if len(line) > longest:
            raise wrong_line(number, f"expected a line of {longest // 2**20} MiB at most")
        if not line:
            return
        yield line


def read_lines(lines: Iterable[bytes]) -> Iterator[Record]:
    """Iterate over the records of the lines of a file, as `read_file` does."""
    digest, number, last = hashlib.sha256(), 0, "header"
    ended, version = False, FORMAT
    for number, line in enumerate(lines, 1):
        if ended:
            raise wrong_line(number, "expected nothing after the end of the file")
        record = _decode(line, number, version)
        if number == 1:
            version = record.fields["format"]
        if (number == 1 and record.kind != "header") or _ORDER[record.kind] < _ORDER[last]:
            raise wrong_line(number, f"expected no {record.kind} here; the records come in another order")
        if record.kind == "header" and number > 1:
            raise wrong_line(number, "expected one header")
        last = record.kind
        if ended := record.kind == "end":
            _check_end(record, line, digest.hexdigest())
        else:
            digest.update(line)
            yield record
    if not ended:
        raise wrong_line(number + 1, "expected more; the file was cut off")


def _decode(line: bytes, number: int, version: int) -> Record:
    if not line.endswith(b"\n"):
        raise wrong_line(number, "expected a whole line; the file was cut off")
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise wrong_line(number, f"expected a record of JSON ({error})") from error
    kind = fields.pop("record", None) if isinstance(fields, dict) else None
    if number == 1:
        _check_format(kind, fields)
    if not isinstance(kind, str) or kind not in RECORDS:
        raise wrong_line(number, f"expected one of the records {', '.join(RECORDS)}; got {kind!r:.60}")
    for name, (since, value) in _LATER.get(kind, {}).items():
        if version < since:
            fields.setdefault(name, value)
    wanted = RECORDS[kind]
    if fields.keys() != wanted.keys():
        wrong = sorted(fields.keys() ^ wanted.keys())[0]
        raise wrong_line(
            number, f"{'unknown' if wrong in fields else 'missing'} field {wrong!r:.60} of the record {kind}"
        )
    for name, value in fields.items():
        if type(value) not in wanted[name]:
            raise wrong_line(
                number, f"the field {name} of the record {kind} has a value of another type: {value!r:.60}"
            )
        if type(value) is int and not 0 <= value < _bound(name):
            raise wrong_line(number, f"the field {name} of the record {kind} is out of range: {value}")
        if type(value) is str:
            _check_text(value, name, number)
    return Record(kind, fields, number)


def _bound(name: str) -> int:
    if name == "deadline":  # earlier programs took any; who was terminating comes dead
        return 2**63
    return _LATEST if name.endswith("_at") else LARGEST_NUMBER


def _check_format(kind: object, fields: Any) -> None:
    if kind != "header" or type(fields.get("format")) is not int:
        raise wrong_line(1, "expected the header of a file that ikigai export has made")
    if not 1 <= fields["format"] <= FORMAT:
        known = f"this ikigai knows those up to {FORMAT}: upgrade ikigai"
        raise wrong_line(1, f"the file has format {fields['format']}, and {known}")


def _check_text(value: str, name: str, number: int) -> None:
    if "\0" in value:
        raise wrong_line(number, f"the field {name} holds a NUL character, which no database takes")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise wrong_line(number, f"the field {name} holds half of a character") from error


def _check_end(record: Record, line: bytes, digest: str) -> None:
    lines = record.line - 1
    if record.fields["lines"] != lines:
        raise wrong_line(record.line, f"expected {record.fields['lines']} lines before the end, got {lines}")
    if record.fields["sha256"] != digest or line != encode_record("end", record.fields):
        raise wrong_line(record.line, "the file was changed: its checksum differs")
