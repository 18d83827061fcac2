"""Agents as sessions of other programs: the way back.

An agent that was made of a session gives the lines of its file unchanged, and then what it has said since, in the form
of that program. Any other agent gives a new file with what its model sees; its forks are other paths of the session,
where the format has paths. A summary that was written here comes before what it keeps.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ikigai_actors.arguments import check_choice
from ikigai_actors.recordings.draft import LINES
from ikigai_actors.recordings.writers.claude_code import ClaudeCodeWriter
from ikigai_actors.recordings.writers.codex import CodexWriter
from ikigai_actors.recordings.writers.pi import PiWriter
from ikigai_actors.recordings.writers.writer import SessionExport, SessionWriter
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.lineage import check_unpruned, read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.blob_references import blobs_of
from ikigai_actors.records.messages.blobs import read_blobs
from ikigai_actors.records.messages.messages import CONVERSATION, ENDINGS, Kind, Message
from ikigai_actors.records.messages.settings import IMPORTED, is_trial
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.new_file import new_file

_WRITTEN = CONVERSATION | ENDINGS | {Kind.SUMMARY.value}
"""The records that have a line in a file."""

WRITERS: Mapping[str, type[SessionWriter]] = {
    "claude-code": ClaudeCodeWriter,
    "codex": CodexWriter,
    "pi": PiWriter,
}
"""The writer of each format."""


def export_session(store: Store, agent: str, file: Path, to: str) -> int:
    """Write an agent as a session of another program to a new file; return how many lines it has.

    Args:
        store: the database; a host may go on.
        agent: a uuid, name, or unique prefix of a uuid.
        file: the new file, which only its user may read.
        to: the format, one of `WRITERS`.

    Raises:
        AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
        HistoryPruned: its messages were deleted.
        BadInput: there is something at the place of the file, or it cannot be written.
    """
    check_choice(to, "to", tuple(WRITERS))
    session = store.read(lambda tx: _session_of(tx, registry.find(tx, agent), to))
    data = WRITERS[to](session).written()
    with new_file(file, "an export") as part:
        part.write(data)
    return data.count(b"\n")


def _session_of(tx: Transaction, top: AgentRecord, to: str) -> SessionExport:
    check_unpruned(top.uuid, top.pruned_at)
    history = StoredHistory(tx, read_lineage(tx, top.uuid, whole=True))
    note = next((one for one in history.backwards(history.head) if _is_note(one, to)), None)
    since = note.id if note is not None else 0
    logs = [_seen(history, since)]
    if note is None and WRITERS[to].has_paths:
        logs += [_seen(one, 0) for one in _forks(tx, top)]
    written = [message for log in logs for message, is_new in log if is_new]
    found = read_blobs(
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
        b"".join(found[blob.sha256] for blob in blobs_of(note)) if note is not None else b"",
        facts,
        since,
        _undone(history, since),
        found,
        str(facts.get("folder") or Path.cwd()),
    )


def _is_note(message: Message, to: str) -> bool:
    """Whether a message is the note with the file of a session of a format."""
    told = message.data.get(IMPORTED) if message.kind == Kind.NOTE else None
    return isinstance(told, dict) and told.get("format") == to and "file" in told


def _forks(tx: Transaction, top: AgentRecord) -> Iterator[StoredHistory]:
    """The histories of the forks of an agent, and of theirs, that are no trials."""
    among = {top.uuid}
    for one in registry.oldest_first(registry.some(tx, registry.uuids_descended(tx, top.uuid))):
        if one.parent_uuid in among and not one.grafted and one.pruned_at is None:
            history = StoredHistory(tx, read_lineage(tx, one.uuid, whole=True))
            if not is_trial(history.view(history.head).settings):
                among.add(one.uuid)
                yield history


def _seen(history: StoredHistory, since: int) -> list[tuple[Message, bool]]:
    """The messages that a model sees at the end of a history, and whether each must be written.

    Args:
        history: the history.
        since: the position of the note with the file; what names lines after that is in the file.
    """
    view = history.view(history.head)
    ranges = view.visible(history.head)
    shown = [
        one
        for one in history.between(0, history.head)
        if one.kind in _WRITTEN and any(start < one.id <= end for start, end in ranges)
    ]
    seen = [(one, not _is_in_file(one, since)) for one in shown if one.kind != Kind.SUMMARY or _is_in_file(one, since)]
    lens = view.lens
    summary = next((one for one in history.between(0, history.head) if lens and one.id == lens.summary), None)
    if lens is None or summary is None or _is_in_file(summary, since):
        return seen
    early = [two for two in seen if two[0].id < lens.keep_from]
    prompt = [(one, True) for one, _ in early if one.id == lens.prompt]
    return [*early, (summary, True), *prompt, *((one, True) for one, _ in seen if one.id >= lens.keep_from)]


def _is_in_file(message: Message, since: int) -> bool:
    return bool(since) and LINES in message.data


def _undone(history: StoredHistory, since: int) -> int:
    """How many turns of the file count no more."""
    everything = history.between(0, history.head)
    in_file = [one.id for one in everything if _is_in_file(one, since)]
    prompts = {one.id for one in everything if one.kind == Kind.USER and one.id in set(in_file)}
    if not prompts:
        return 0

    def counting(head: int) -> int:
        view = history.view(head)
        return sum(view.shows(one, head) for one in prompts)

    return counting(max(in_file)) - counting(history.head)
