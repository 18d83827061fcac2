"""Verifies that an exported file is as it was written, and fits a checkpoint."""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from ikigai_actors.arguments import as_path
from ikigai_actors.errors import BadInput, ImportRefused
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord, Handle
from ikigai_actors.records.proof.chain_check import ChainCheck, Problem
from ikigai_actors.records.proof.checkpoint import check_root, read_checkpoint, root_of
from ikigai_actors.records.proof.verify import HashedHead, Verified, heads_missed, verify_histories
from ikigai_actors.records.transfer.format import HASHED, read_file
from ikigai_actors.records.transfer.manifest import agent_record, blob_bytes, hash_bytes, log_starts, message_row
from ikigai_actors.store.base import Store, Transaction


def verify_file(path: Path, since: Mapping[str, HashedHead] | None = None) -> Verified:
    """Compare the hashes of a file with its messages, and with the heads of a checkpoint.

    Raises:
        BadInput: the file cannot be read, is no exported file, or is of a format without hashes.
    """
    agents: dict[str, AgentRecord] = {}
    pruned: dict[str, bytes | None] = {}
    stored: set[str] = set()
    problems: list[Problem] = []
    check: ChainCheck | None = None
    number = 0
    try:
        for record in read_file(path):
            number = record.line
            if record.kind == "header" and record.fields["format"] < HASHED:
                raise BadInput(f"The file {path} has format {record.fields['format']}, which has no hashes.")
            if record.kind == "agent":
                agent = agent_record(record.fields)
                agents[agent.uuid] = agent
                if agent.pruned_at is not None:
                    pruned[agent.uuid] = hash_bytes(record, "pruned_hash")
            if record.kind == "message":
                if check is None:
                    check = _check_of(agents, since)
                problems += check.read(message_row(record))
            if record.kind == "blob":
                stored.add(sha256(blob_bytes(record)).hexdigest())
    except ImportRefused as error:
        if not number:
            raise BadInput(f"The file {path} cannot be verified. {error}") from error
        problems.append(Problem("altered", "", number))
    check = check or _check_of(agents, since)
    problems += [*check.conclude(), *check.attachments_missed(stored)]
    if since:
        here = {uuid: head for uuid, head in since.items() if uuid in agents}
        problems += heads_missed(check, here, set(pruned), {uuid: last for uuid, last in pruned.items() if last})
    looked_at = len(agents) - len(pruned)
    return Verified(looked_at, check.messages, len(pruned), tuple(dict.fromkeys(problems)), check.omitted)


def _check_of(agents: Mapping[str, AgentRecord], since: Mapping[str, HashedHead] | None) -> ChainCheck:
    wanted = [(uuid, head.position) for uuid, head in (since or {}).items()]
    return ChainCheck(log_starts(agents.values()), wanted)


def verify_named(
    store: Store, what: Handle | str | os.PathLike[str] | None, since: str | os.PathLike[str] | None
) -> Verified:
    """Verify an agent's history, an exported file, or (for None) the whole database, optionally against a checkpoint.

    Raises the errors of `verify_histories`, `verify_file`, `read_checkpoint` and `registry.uuid_of`, and `BadInput` for
    a checkpoint of another database.
    """
    checkpoint = None if since is None else read_checkpoint(as_path(since))
    heads = None if checkpoint is None else checkpoint.heads
    if (file := _file_of(what)) is not None:
        return verify_file(file, heads)
    uuid = None if what is None or isinstance(what, os.PathLike) else registry.uuid_of(store, what)

    def work(tx: Transaction) -> Verified:
        if checkpoint is not None:
            check_root(root_of(tx), checkpoint)
        return verify_histories(tx, uuid, heads)

    return store.read(work)


def _file_of(what: object) -> Path | None:
    if not isinstance(what, str | os.PathLike):
        return None
    path = as_path(what)
    return path if isinstance(what, os.PathLike) or os.path.isfile(path) else None  # noqa: PTH113 - of a path that cannot be, Path.is_file raises
