"""The part of a history that is written as a session of another program.

An agent that was imported from a session has a note with the session's file. Only its later messages are written, and
undone turns of the file are counted. For any other agent, everything that its model sees is written, with its forks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.lineage import check_unpruned, read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.blob_references import blobs_of
from ikigai_actors.records.messages.blobs import read_blobs
from ikigai_actors.records.messages.messages import CONVERSATION, ENDINGS, Kind, Message
from ikigai_actors.records.messages.settings import IMPORTED, is_trial
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.existing import existing_to_read

LINES = "lines"
"""The key in a message's data under which the line numbers of the imported file are."""

_WRITTEN = CONVERSATION | ENDINGS | {Kind.SUMMARY.value}
"""The kinds of messages that have a line in a session file."""


@dataclass(frozen=True, slots=True)
class SessionExport:
    """The contents of an agent that are to be written as a session of another program."""

    agent: str
    """The uuid of the agent."""
    created_at: int
    model: str
    """The model that has answered last, ``provider:model``."""
    system: str
    """The system prompt of the agent."""
    logs: Sequence[Sequence[tuple[Message, bool]]]
    """The visible messages of the agent, and of each of its forks, each with whether it must be written."""
    data: bytes = b""
    """The file from which the agent was imported; empty for none."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The note of the import."""
    since: int = 0
    """The position of the note of the import."""
    undone: int = 0
    """The number of turns of the imported file that were undone."""
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    """The bytes of pictures and the like, by hash."""
    folder: str = "."
    """The directory of the session, by which programs look for sessions."""

    def attached(self, message: Message) -> list[tuple[str, bytes | None]]:
        """Return the media type and the bytes of a message's attachments; None for missing bytes."""
        return [(blob.media, self.blobs.get(blob.sha256)) for blob in blobs_of(message)]


def read_session(store: Store, agent: str, to: str, *, has_paths: bool) -> SessionExport:
    """Read the part of an agent's history that is written as a session.

    Args:
        store: the database; a host may run meanwhile.
        agent: a uuid, name, or unique prefix of a uuid.
        to: the target format. An imported file of another format is ignored.
        has_paths: whether the format can have forks as paths of one file.

    Raises:
        AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
        HistoryPruned: the messages of the agent were pruned.
    """
    return store.read(lambda tx: _session_of(tx, registry.find(tx, agent), to, has_paths))


def stored_session(database: str | None, agent: str, to: str, *, has_paths: bool) -> SessionExport:
    """Read an agent of an existing database as `read_session` does. Also raises the errors of `existing_to_read`."""
    with existing_to_read(database) as store:
        return read_session(store, agent, to, has_paths=has_paths)


def _session_of(tx: Transaction, top: AgentRecord, to: str, has_paths: bool) -> SessionExport:
    check_unpruned(top.uuid, top.pruned_at)
    history = StoredHistory(tx, read_lineage(tx, top.uuid, whole=True))
    note = next((message for message in history.backwards(history.head) if _is_note(message, to)), None)
    since = note.id if note is not None else 0
    logs = [_seen(history, since)]
    if note is None and has_paths:
        logs += [_seen(child, 0) for child in _forks(tx, top)]
    written = [message for log in logs for message, is_new in log if is_new]
    blobs = read_blobs(
        tx, {blob.sha256 for message in (*written, *([note] if note else ())) for blob in blobs_of(message)}
    )
    replies = [message for message, _ in logs[0] if message.kind == Kind.ASSISTANT and message.data.get("model")]
    settings = history.view(history.head).settings
    facts = note.data[IMPORTED] if note is not None else {}
    return SessionExport(
        top.uuid,
        top.created_at,
        str(replies[-1].data["model"]) if replies else str(settings.get("model") or ""),
        str(settings.get("system") or ""),
        logs,
        b"".join(blobs[blob.sha256] for blob in blobs_of(note)) if note is not None else b"",
        facts,
        since,
        _undone(history, since),
        blobs,
        str(facts.get("folder") or Path.cwd()),
    )


def _is_note(message: Message, to: str) -> bool:
    """Return whether a message is the note of an import from a session file in this format."""
    origin = message.data.get(IMPORTED) if message.kind == Kind.NOTE else None
    return isinstance(origin, dict) and origin.get("format") == to and "file" in origin


def _forks(tx: Transaction, top: AgentRecord) -> Iterator[StoredHistory]:
    """Yield the histories of an agent's forks, and of their forks, without trials."""
    among = {top.uuid}
    for record in registry.oldest_first(registry.some(tx, registry.uuids_descended(tx, top.uuid))):
        if record.parent_uuid in among and not record.grafted and record.pruned_at is None:
            history = StoredHistory(tx, read_lineage(tx, record.uuid, whole=True))
            if not is_trial(history.view(history.head).settings):
                among.add(record.uuid)
                yield history


def _seen(history: StoredHistory, since: int) -> list[tuple[Message, bool]]:
    """Return the visible messages at the end of a history, and whether each must be written.

    Args:
        history: the history.
        since: the position of the note with the file; what names lines after that is in the file.
    """
    view = history.view(history.head)
    ranges = view.visible(history.head)
    shown = [
        message
        for message in history.between(0, history.head)
        if message.kind in _WRITTEN and any(start < message.id <= end for start, end in ranges)
    ]
    seen = [
        (message, not _is_in_file(message, since))
        for message in shown
        if message.kind != Kind.SUMMARY or _is_in_file(message, since)
    ]
    lens = view.lens
    summary = next(
        (message for message in history.between(0, history.head) if lens and message.id == lens.summary), None
    )
    if lens is None or summary is None or _is_in_file(summary, since):
        return seen
    early = [two for two in seen if two[0].id < lens.keep_from]
    prompt = [(message, True) for message, _ in early if message.id == lens.prompt]
    return [*early, (summary, True), *prompt, *((message, True) for message, _ in seen if message.id >= lens.keep_from)]


def _is_in_file(message: Message, since: int) -> bool:
    return bool(since) and LINES in message.data


def _undone(history: StoredHistory, since: int) -> int:
    """Return the number of turns of the session file that were undone after the import."""
    everything = history.between(0, history.head)
    in_file = [message.id for message in everything if _is_in_file(message, since)]
    prompts = {message.id for message in everything if message.kind == Kind.USER and message.id in set(in_file)}
    if not prompts:
        return 0

    def counting(head: int) -> int:
        view = history.view(head)
        return sum(view.shows(prompt, head) for prompt in prompts)

    return counting(max(in_file)) - counting(history.head)
