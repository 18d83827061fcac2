"""The common part of all session writers: recorded lines unchanged, then rows for later messages."""

import base64
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ikigai_actors.reach.sessions import LINES, SessionExport
from ikigai_actors.recordings.recording import parse_json
from ikigai_actors.records.messages.messages import Message

SessionRow = dict[str, Any]
"""A line of a file, as JSON."""


class SessionWriter(ABC):
    """Writes an agent as a session file of another program. A subclass knows the format."""

    has_paths: ClassVar[bool] = True
    """Whether a session file of this format may have several paths."""

    def __init__(self, session: SessionExport) -> None:
        self.session = session
        self.folder = session.folder
        self.id = str(uuid.uuid5(uuid.NAMESPACE_OID, session.agent))
        self._lines = session.data.removeprefix(b"\xef\xbb\xbf").split(b"\n")

    @abstractmethod
    def head_rows(self) -> Iterator[SessionRow]:
        """Return the rows with which a new file begins."""

    @abstractmethod
    def rows_of(self, message: Message, after: str | None) -> Iterator[SessionRow]:
        """Return the rows that a message becomes in the file.

        Args:
            after: the id of the row before it, where rows have ids.
        """

    @abstractmethod
    def id_of(self, row: Mapping[str, Any]) -> str | None:
        """Return the id of a new row or of an existing line; None if it has none."""

    def written(self) -> bytes:
        """Return the contents of the file: the recorded lines unchanged, and then the rows of later messages."""
        placed: dict[tuple[str, int], str | None] = {}
        paths = [self._path_rows(log, placed) for log in self.session.logs]
        main = paths[0]
        rows = [*(self.first_rows() if self.session.data else self.head_rows()), *main[:-1]]
        rows += [row for path in paths[1:] for row in path]
        rows += main[-1:]  # what is last is the session as it is
        if not rows:
            return self.session.data
        base = self._whole(self.session.data)
        numbered = self.numbered(rows, base)
        return base + b"".join(json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n" for row in numbered)

    def first_rows(self) -> Iterator[SessionRow]:
        """Return the rows that come first when rows are added to an existing file; none by default."""
        return iter(())

    def numbered(self, rows: Sequence[SessionRow], base: bytes) -> Sequence[SessionRow]:
        """Return the new rows. If the lines of the file are numbered, the rows continue the numbers.

        Args:
            rows: the new rows, without numbers.
            base: the existing lines of the file.
        """
        return rows

    def _path_rows(
        self, log: Sequence[tuple[Message, bool]], placed: dict[tuple[str, int], str | None]
    ) -> list[SessionRow]:
        rows: list[SessionRow] = []
        after, line = None, -1 if self.session.data else 0
        for message, is_new in log:
            key = message.agent_uuid, message.id
            if not is_new:
                after, line = None, max(message.data[LINES], default=line) if message.id > self.session.since else -1
            elif key in placed:
                after = placed[key]
            else:
                after = after or self._id_at(line)
                for row in self.rows_of(message, after):
                    rows.append(row)
                    after = self.id_of(row) or after
                placed[key] = after
        return rows

    def _id_at(self, number: int) -> str | None:
        """Return the id of the line with a number, counted from 1. For -1, the last id in the file; None for 0."""
        if number > 0:
            return self.id_of(parse_json(self._lines[number - 1]))
        for text in reversed(self._lines) if number else ():
            try:
                identity = self.id_of(parse_json(text))
            except (ValueError, AttributeError):
                continue
            if identity is not None:
                return identity
        return None

    def _whole(self, data: bytes) -> bytes:
        """Return the file's bytes with a newline at the end; a last line that was cut off is left out."""
        if not data or data.endswith(b"\n"):
            return data
        kept, _, last = data.rpartition(b"\n")
        try:
            parse_json(last)
        except ValueError:
            return kept + b"\n" if kept else b""
        return data + b"\n"

    def row_id(self, message: Message, part: int = 0) -> str:
        """Return an id for a row, which is always the same for the same message and part."""
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{message.agent_uuid} {message.id} {part}"))

    def pictures(self, message: Message) -> list[tuple[str, str]]:
        """Return the media types and base64 texts of a message's attachments."""
        known = self.session.attached(message)
        return [(media, base64.b64encode(data).decode()) for media, data in known if data is not None]
