"""Drafts as the records of an exported file (`ikigai_actors.records.transfer.format`). Pure."""

import base64
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ikigai_actors.records.agents.identity import NAME_LENGTH
from ikigai_actors.records.transfer.format import LEFT_OUT, RECORDS, Record, file_lines, read_lines
from ikigai_actors.store.migrations import newest
from ikigai_actors.verbs.upkeep.draft import Draft

_FORMAT = 3
"""The latest version of the format whose messages need no hashes: the import makes them."""

_Fields = dict[str, Any]


def records_of(drafts: Sequence[Draft], program: str) -> list[Record]:
    """Return the records of a file with these agents, the first one topmost; each is checked as in any file.

    Args:
        drafts: the drafts, parents first. Their births are written here, so nothing may be added to them afterwards.
        program: the program that has written the recordings, for the header.
    """
    for draft in drafts:
        draft.interrupt(draft.messages[-1].at)
    born = {draft.uuid: draft.parent.bear(draft) for draft in drafts if draft.parent is not None}
    contents = list(_contents(drafts, _names(drafts), born))
    counts = Counter(kind for kind, _ in contents)
    header = {
        "format": _FORMAT,
        "program": program,
        "schema": newest(),
        "exported_at": drafts[0].messages[-1].at,
        "top": drafts[0].uuid,
        "counts": {kind: counts[kind] for kind in RECORDS if kind not in ("header", "end")},
        "left_out": list(LEFT_OUT),
    }
    return list(read_lines(file_lines([("header", header), *contents])))


def _contents(
    drafts: Sequence[Draft], names: Mapping[str, str], born: Mapping[str, int]
) -> Iterator[tuple[str, _Fields]]:
    for draft in drafts:
        yield "agent", _agent(draft, names[draft.uuid], born.get(draft.uuid, 0))
    for draft in drafts:
        for position, said in enumerate(draft.messages, draft.fork + 1):
            yield (
                "message",
                {
                    "agent": draft.uuid, "id": position, "kind": said.kind, "content": said.content,
                    "data": dict(said.data) or None, "created_at": said.at,
                },
            )  # fmt: skip
    for draft in drafts:
        for position, said in enumerate(draft.messages, draft.fork + 1):
            if "usage" in said.data:
                yield (
                    "spending",
                    {
                        "agent": draft.uuid, "id": position, "labels": {}, "created_at": said.at, "tokens": said.tokens,
                        "usd": said.usd,
                    },
                )  # fmt: skip
    blobs = {sha256: blob for draft in drafts for sha256, blob in draft.blobs.items()}
    for sha256, (media, data) in blobs.items():
        yield "blob", {"sha256": sha256, "media": media, "bytes": base64.b64encode(data).decode()}


def _agent(draft: Draft, name: str, born: int) -> _Fields:
    return {
        "uuid": draft.uuid, "name": name, "parent": draft.parent.uuid if draft.parent is not None else None,
        "supervisor": draft.supervisor.uuid if draft.supervisor is not None else None, "fork_message_id": draft.fork,
        "born": born, "status": "running", "turn": 0, "restart": "transient", "exit_reason": None,
        "created_at": draft.messages[0].at, "ended_at": None, "on_orphan": "reparent", "strategy": "one_for_one",
        "intensity": 3, "period": 600_000, "deadline": None, "exit_cause": None, "exit_sender": None,
        "spent_tokens": sum(said.tokens for said in draft.messages),
        "spent_usd": sum(said.usd for said in draft.messages),
        "pruned_at": None, "labels": {},
    }  # fmt: skip


def _names(drafts: Sequence[Draft]) -> dict[str, str]:
    """Return a unique name for each draft, by uuid."""
    names: dict[str, str] = {}
    taken = set[str]()
    for draft in drafts:
        name, number = draft.name, 1
        while name in taken:
            number += 1
            name = f"{draft.name[: NAME_LENGTH - 1 - len(str(number))]}-{number}"
        taken.add(name)
        names[draft.uuid] = name
    return names
