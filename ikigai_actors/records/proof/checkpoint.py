"""Checkpoints: a small file with the hash of every history, to be kept out of reach of the database's hosts.

    {"checkpoint":1,"root":UUID,"at":"2026-11-26T08:00:00.000Z","agents":N,"previous":SHA256 or null}
    {"agent":UUID,"head":41,"hash":HEX}       for each log that has messages, by uuid
    {"end":LINES,"sha256":HEX}                of all lines before it

With a previous checkpoint, ``previous`` is the SHA-256 of that file, and the file names only the logs whose heads have
changed since.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput, HistoryError
from ikigai_actors.records.agents import registry
from ikigai_actors.records.proof.chain_check import is_hash
from ikigai_actors.records.proof.verify import HashedHead, verify_histories
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.new_file import new_file
from ikigai_actors.text import utc_time

CHECKPOINT_FORMAT = 1
"""The version of the format that this program writes and reads."""

_encode = json.JSONEncoder(separators=(",", ":")).encode
_HASH = re.compile("[0-9a-f]{64}")


class Checkpoint(NamedTuple):
    """The contents of a checkpoint file."""

    root: str
    """The uuid of agent 0 of the database."""
    heads: Mapping[str, HashedHead]
    """The heads of logs, by the uuids of their agents."""
    sha256: str
    """The SHA-256 of the file."""


class Checkpointed(NamedTuple):
    """The result of writing a checkpoint."""

    agents: int
    """The number of logs in the file."""
    sha256: str
    """The SHA-256 of the file."""


def write_checkpoint(store: Store, file: Path, now: int, previous: Path | None = None) -> Checkpointed:
    """Write the heads of all logs to a new file, from one snapshot.

    Args:
        store: the database.
        file: the new file.
        now: the time that it names, in milliseconds since 1970.
        previous: an earlier checkpoint. The database is verified against it first.

    Raises:
        HistoryError: a log does not fit the earlier checkpoint, or a stored hash is invalid.
        BadInput: a file cannot be read or written, or the earlier one is of another database.
    """
    earlier = None if previous is None else read_checkpoint(previous)
    with new_file(file, "a checkpoint") as part:

        def work(tx: Transaction) -> Checkpointed:
            root, known = root_of(tx), dict[str, HashedHead]()
            if earlier is not None:
                check_root(root, earlier)
                if problems := verify_histories(tx, since=earlier.heads).problems:
                    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
                    text = f"The histories are not those of {previous}, and nothing was written: {problems[0]}{more}."
                    raise HistoryError(text, problems[0].agent)
                known = dict(earlier.heads)
            heads = {uuid: _hashed(uuid, position, stored) for uuid, position, stored in tx.run("head_hashes")}
            heads_since = {uuid: head for uuid, head in heads.items() if known.get(uuid) != head}
            part.seek(0)  # it may be read again
            part.truncate()
            digest = hashlib.sha256()
            for line in checkpoint_lines(root, now, heads_since, None if earlier is None else earlier.sha256):
                digest.update(line)
                part.write(line)
            return Checkpointed(len(heads_since), digest.hexdigest())

        return store.read(work)


def _hashed(uuid: str, position: int, stored: object) -> HashedHead:
    if not is_hash(stored):
        raise HistoryError(f"Message {position} of {uuid} has no hash. Nothing was written: run ikigai verify.", uuid)
    return HashedHead(position, stored)


def root_of(tx: Transaction) -> str:
    """Return the uuid of agent 0. Raises `BadInput` if there is none yet."""
    if (root := registry.root(tx)) is None:
        raise BadInput("The database has no agents yet: nothing can be verified.")
    return root.uuid


def check_root(root: str, checkpoint: Checkpoint) -> None:
    """Raise `BadInput` if a checkpoint belongs to a database with another agent 0."""
    if checkpoint.root != root:
        raise BadInput(f"The checkpoint is of the database of agent 0 {checkpoint.root}; this one has {root}.")


def checkpoint_lines(root: str, now: int, heads: Mapping[str, HashedHead], previous: str | None) -> Iterator[bytes]:
    """Return the lines of a checkpoint file with these heads."""
    at = utc_time(now).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    header = {"checkpoint": CHECKPOINT_FORMAT, "root": root, "at": at, "agents": len(heads), "previous": previous}
    records: list[dict[str, Any]] = [header]
    records += [{"agent": uuid, "head": heads[uuid].position, "hash": heads[uuid].hash.hex()} for uuid in sorted(heads)]
    digest = hashlib.sha256()
    for record in records:
        line = _encode(record).encode() + b"\n"
        digest.update(line)
        yield line
    yield _encode({"end": len(records), "sha256": digest.hexdigest()}).encode() + b"\n"


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises `BadInput` if the file cannot be read, was changed, or is no checkpoint."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise BadInput(f"The checkpoint {path} cannot be read: {error.strerror or error}.") from error
    *records, end = [_record(path, number, line) for number, line in enumerate(lines, 1)] or [{}]
    if not records or not {"checkpoint", "root"} <= records[0].keys():
        raise BadInput(f"The file {path} is no checkpoint: `ikigai checkpoint` writes them.")
    if records[0]["checkpoint"] != CHECKPOINT_FORMAT:
        raise BadInput(f"The checkpoint {path} has format {records[0]['checkpoint']!r:.20}: upgrade ikigai.")
    digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    if end != {"end": len(records), "sha256": digest} or len(records) != 1 + records[0].get("agents", -1):
        raise BadInput(f"The checkpoint {path} was changed, or was cut off: its checksum differs.")
    heads = dict(_head(path, number, record) for number, record in enumerate(records[1:], 2))
    return Checkpoint(str(records[0]["root"]), heads, hashlib.sha256(b"".join(lines)).hexdigest())


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise BadInput(f"The file {path} is no checkpoint: expected an object of JSON in line {number}.")
    return fields


def _head(path: Path, number: int, record: Mapping[str, Any]) -> tuple[str, HashedHead]:
    match record:
        case {"agent": str(uuid), "head": int(position), "hash": str(text)} if position > 0 and _HASH.fullmatch(text):
            return uuid, HashedHead(position, bytes.fromhex(text))
    raise BadInput(f"The file {path} is no checkpoint: expected an agent, its head and its hash in line {number}.")
