"""The file formats of other programs, and functions that read such files."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypedDict, Unpack

from ikigai_actors.arguments import as_path, check_choice, check_flag
from ikigai_actors.errors import BadInput, ImportRefused
from ikigai_actors.recordings import claude_code, codex, langfuse, openai_chats, otel, pi
from ikigai_actors.recordings.recording import LARGEST_FILE, Recording
from ikigai_actors.records.transfer.format import RecordFile
from ikigai_actors.verbs.upkeep.draft import NO_CALLS, Draft
from ikigai_actors.verbs.upkeep.draft_records import records_of

AUTO = "auto"
_OURS = b'{"record":"header"'
"""The first bytes of a file of `ikigai export`. Such a file may be larger than any session."""
_BESIDE = ".meta.json"
"""The suffix of files that Claude Code keeps beside those of subagents. They are ignored."""
_LOOKED_AT = 50
"""The number of first lines that are read to detect a format."""


class _Reader(Protocol):
    def __call__(self, recordings: Sequence[Recording], settings: Mapping[str, Any], models: bool) -> list[Draft]:
        """Return the agents of some files, parents first."""


class Format(NamedTuple):
    """A format of another program's files."""

    is_line: Callable[[Mapping[str, Any]], bool]
    """Returns whether a line is in this format."""
    drafts_of: _Reader
    suffixes: tuple[str, ...] = (".jsonl",)
    """The suffixes of its file names."""


FORMATS: Mapping[str, Format] = {
    "claude-code": Format(claude_code.is_claude_code, claude_code.claude_code_drafts),
    "codex": Format(codex.is_codex, codex.codex_drafts),
    "pi": Format(pi.is_pi, pi.pi_drafts),
    "otel": Format(otel.is_otlp, otel.otel_drafts, (".jsonl", ".json")),
    "langfuse": Format(langfuse.is_langfuse, langfuse.langfuse_drafts, (".jsonl", ".json")),
    "openai": Format(openai_chats.is_chat, openai_chats.openai_drafts),
}
"""Each format by its name."""


class SessionOptions(TypedDict, total=False):
    """Options for the agents made of sessions; see `read_sessions`."""

    keep_workspace: bool
    keep_model: bool
    notice: Callable[[str], object]


def read_sessions(
    file: str | os.PathLike[str],
    recorder: str = AUTO,
    *,
    keep_workspace: bool = False,
    keep_model: bool = False,
    notice: Callable[[str], object] = lambda text: None,
) -> RecordFile:
    """Read the recordings of another program, for `System.import_`: each session becomes an agent.

    Args:
        file: a file, or a folder whose sessions come below one agent.
        recorder: the program that wrote the file, one of `FORMATS`; ``auto`` detects it.
        keep_workspace: whether calls of the agents run, in the workspaces of the host; else none does until their
            setting ``effects`` is removed.
        keep_model: whether to ask the model with which an agent was recorded; else the host's model is asked.
        notice: takes a text about left-out files and last lines, and about other contents that a model may have read.

    Raises:
        ImportRefused: a file has a fault; the message names the line.
        BadInput: the file cannot be read, or its format is unknown.
    """
    check_choice(recorder, "recorder", (AUTO, *FORMATS))
    check_flag(keep_workspace, "keep_workspace")
    check_flag(keep_model, "keep_model")
    path = as_path(file)
    settings = {} if keep_workspace else {"effects": dict(NO_CALLS)}
    by_recorder: dict[str, list[Recording]] = {}
    for recording in _recordings(path, recorder):
        known = recorder if recorder != AUTO else recorder_of(recording)
        if known is not None:
            by_recorder.setdefault(known, []).append(recording)
            if recording.is_cut:
                notice(f"{recording.name}: the last line was cut off, and is left out.")
        elif path.is_dir():
            notice(f"{recording.name} was left out: its format is not known.")
    if not by_recorder:
        known = ", ".join(FORMATS)
        raise BadInput(f"{path} has no session of a format that is known: {known}. Nothing was imported.")
    drafts = [
        draft for name, some in by_recorder.items() for draft in FORMATS[name].drafts_of(some, settings, keep_model)
    ]
    if unsaid := sorted({text for draft in drafts for text in draft.unsaid}):
        notice(f"Only in the file, though a model may have read it: {', '.join(unsaid)}.")
    tops = [draft for draft in drafts if draft.parent is None and draft.supervisor is None]
    if not tops:
        raise ImportRefused(f"Nothing was imported. {path} has no session.")
    if len(tops) > 1:
        folder = Draft(f"folder {path.name}", path.stem)
        folder.begin(None, {"format": " ".join(by_recorder), "folder": path.name}, settings, tops[0].messages[0].at)
        for top in tops:
            top.supervisor = folder
        drafts.insert(0, folder)
    return RecordFile(path, tuple(records_of(drafts, " ".join(by_recorder))))


def importable(file: str | os.PathLike[str], recorder: str = AUTO, **how: Unpack[SessionOptions]) -> Path | RecordFile:
    """Return the path of a file of `ikigai export`, or the sessions in any other file.

    Raises the errors of `read_sessions`. For a file of unknown format its path is returned, and the import raises the
    error.
    """
    path = as_path(file)
    if recorder == AUTO and path.is_file():
        if _read(path, len(_OURS), whole=False) == _OURS:
            return path
        if recorder_of(Recording(path.name, _read(path, LARGEST_FILE))) is None:
            return path
    return read_sessions(path, recorder, **how)


def recorder_of(recording: Recording) -> str | None:
    """Return the program that wrote a file, by its first lines; None if unknown."""
    with suppress(ImportRefused):
        for line in islice(recording.rows(), _LOOKED_AT):
            for name, known in FORMATS.items():
                if known.is_line(line.value):
                    return name
    return None


def _recordings(path: Path, recorder: str) -> Iterator[Recording]:
    """Yield the recording of a file and those of its subagents, or the recordings of all files in a folder."""
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        raise BadInput(f"The file {path} cannot be read: {error.strerror or error}.") from error
    among = FORMATS.values() if recorder == AUTO else [FORMATS[recorder]]
    suffixes = {suffix for ending in among for suffix in ending.suffixes}
    if is_folder:
        paths = (file for file in path.rglob("*") if file.suffix in suffixes and not file.name.endswith(_BESIDE))
        files = sorted(file for file in paths if file.is_file())
        within = path
    else:
        files, within = [path, *sorted((path.parent / path.stem / "subagents").glob("*.jsonl"))], path.parent
    left = LARGEST_FILE
    for file in files:
        data = _read(file, left)
        left -= len(data)
        if data.strip() or not is_folder:
            yield Recording(file.relative_to(within).as_posix(), data)


def _read(path: Path, most: int, *, whole: bool = True) -> bytes:
    """Return the bytes of a file, or its first ones. Raises `BadInput`, and `ImportRefused` if it is too large."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"The file {path} cannot be read: it is no regular file.")
        if whole and status.st_size > most:
            raise ImportRefused(f"Nothing was imported. {path}: expected {LARGEST_FILE // 2**30} GiB at most.")
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise BadInput(f"The file {path} cannot be read: {error.strerror or error}.") from error
