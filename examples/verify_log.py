"""Check the hashes in a file of `ikigai export`, with nothing but the standard library.

    python verify_log.py FILE [CHECKPOINT]

Exit status 0 if every hash fits, else 1 with a line for each place. A checkpoint is a file of `ikigai checkpoint`. Of
its agents those are compared that are in the file.
"""

import json
import sys
from base64 import b64decode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from re import fullmatch
from typing import Any

EMPTY = sha256(b"ikigai history 1").digest()

Record = dict[str, Any]
Log = tuple[str | None, int, list[Record], Record]
"""The parent, the fork point, the messages, and what the file says of the agent."""


def hash_after(before: str, message: Record) -> str:
    """The hash of a message, and of all before it."""
    data = message["data"]
    text = "" if data is None else data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    digest = sha256(bytes.fromhex(before))
    for value in (message["id"], message["created_at"], message["kind"], message["content"], text):
        part = str(value).encode()
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def attachments_missed(records: list[Record]) -> Iterator[str]:
    """Find every attachment that is missing, or whose bytes do not have the hash in its message."""
    there = {sha256(b64decode(record["bytes"])).hexdigest() for record in records if record["record"] == "blob"}
    for record in records:
        if record["record"] == "message" and isinstance(record["data"], dict):
            for attached in record["data"].get("attached") or ():
                if attached["sha256"] not in there:
                    there.add(attached["sha256"])  # each is named once
                    yield f"attachment: {record['agent']} {record['id']}"


def wrongly_left_out(uuid: str, messages: list[Record], agent: Record) -> Iterator[str]:
    """Find what an export does not leave out: it does so in the logs of agents outside, and only before a clear."""
    outside = uuid.startswith("origin:") or agent["born"] == 0
    left_out = 0
    for message in [*messages, {"kind": "end"}]:
        if message["kind"] == "omitted":
            left_out = message["id"]
        elif message["kind"] == "clear" and outside:
            left_out = 0
        elif message["kind"] != "fork" and left_out:
            yield f"altered: {uuid} {left_out}"
            left_out = 0


def read(path: str, count: str) -> list[Record]:
    """The records of a file, whose last line has the number of the lines before it, and their SHA-256."""
    lines = Path(path).read_bytes().splitlines(keepends=True)
    records: list[Record] = [json.loads(line) for line in lines]
    end = records.pop()
    if (end.get(count), end.get("sha256")) != (len(records), sha256(b"".join(lines[:-1])).hexdigest()):
        raise ValueError("it was changed or cut off, since its checksum differs")
    for number, record in enumerate(records, 1):
        if (digest := record.get("hash")) is not None and not fullmatch("[0-9a-f]{64}", digest):
            raise ValueError(f"expected the hash in line {number} to be 64 hexadecimal digits, got {digest!r}")
    return records


def logs_of(records: list[Record]) -> dict[str, Log]:
    """Every log by its agent. What agents inherit from one outside is a log, too."""
    logs: dict[str, Log] = {}
    for record in records:
        if record["record"] == "agent":
            logs[record["uuid"]] = (record["parent"], record["fork_message_id"], [], record)
            if record["parent"] is not None:
                logs.setdefault(record["parent"], (None, 0, [], {}))
        elif record["record"] == "message":
            logs[record["agent"]][2].append(record)
    return logs


def fork_point(logs: Mapping[str, Log], uuid: str) -> tuple[str, int] | None:
    """In whose log the fork point of an agent is, and where; None for one that inherits nothing."""
    holder, position = logs[uuid][:2]
    if holder is None or not position:
        return None
    while logs[holder][1] >= position and (above := logs[holder][0]) is not None:
        holder = above
    return holder, position


def problems(records: list[Record], heads: Mapping[str, tuple[int, str]]) -> Iterator[str]:
    """Every place that is not as it was written."""
    logs = logs_of(records)
    stored = {(uuid, message["id"]): message["hash"] for uuid, log in logs.items() for message in log[2]}
    points = {uuid: place for uuid in logs if (place := fork_point(logs, uuid)) is not None}
    for uuid, place in points.items():
        if logs[uuid][3].get("pruned_at") is None and not stored.get(place):
            yield f"missing: {place[0]} {place[1]}"
    for uuid, (parent, fork, messages, agent) in logs.items():
        if parent is not None and not messages and agent["pruned_at"] is None:
            yield f"missing: {uuid} {fork + 1}"
        # Births that the parent outside recorded after the fork points have no hashes.
        hashed = max((place[1] for place in points.values() if place[0] == uuid), default=0)
        before, due = stored.get(points[uuid]) if uuid in points else EMPTY.hex(), fork + 1
        yield from wrongly_left_out(uuid, messages, agent)
        for message in messages:
            if message["id"] != due:
                yield f"missing: {uuid} {due}"
                before = None
            if message["hash"] is None and not (uuid.startswith("origin:") and message["id"] > hashed):
                yield f"altered: {uuid} {message['id']}"
            comparable = before and message["hash"] and message["kind"] != "omitted"  # the hash of what stood there
            if comparable and hash_after(str(before), message) != message["hash"]:
                yield f"altered: {uuid} {message['id']}"
            before, due = message["hash"], message["id"] + 1
    yield from attachments_missed(records)
    for uuid, (head, known) in heads.items():
        if uuid in logs and logs[uuid][3]["pruned_at"] is not None:
            if logs[uuid][3]["pruned_hash"] != known:
                yield f"pruned, and the checkpoint has another last message: {uuid} {head}"
        elif uuid in logs and (uuid, head) not in stored:
            yield f"shorter than the checkpoint: {uuid} {head}"
        elif uuid in logs and stored[uuid, head] != known:
            yield f"another history than the checkpoint: {uuid} {head}"


def main(path: str, checkpoint: str | None = None) -> int:
    """Print what is wrong; return the exit status."""
    try:
        rows = [] if checkpoint is None else read(checkpoint, "end")[1:]
        heads = {row["agent"]: (row["head"], row["hash"]) for row in rows}
        faults = list(dict.fromkeys(problems(read(path, "lines"), heads)))
    except LookupError as error:
        faults = [f"The file cannot be verified: {error} is not in it"]
    except (OSError, ValueError, TypeError) as error:
        faults = [f"The file cannot be verified: {error}"]
    print("\n".join(faults) or "every hash fits")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
