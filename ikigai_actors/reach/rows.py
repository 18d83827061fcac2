"""The rows of the observer page: one for each agent, each field with the version of its latest change.

    rows = LiveRows(epoch)
    rows.refresh(glances, latest)           # the registry, as it is now
    rows.hear(message, at)                  # a message that arrives between two readings
    rows.since(17)                          # what has changed after version 17

A page has a version and no queue: even a slow page gets the latest values of the fields that have changed since its
version. All pages share the rows. Times are arguments. Thread-safe.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ikigai_actors.records.agents.words import called
from ikigai_actors.records.log.moments import GOES_ON, Glance, LogMark, birth_label
from ikigai_actors.records.messages.messages import ENDINGS, Kind, Message
from ikigai_actors.records.messages.replies import spent_of

ROW_COLUMNS = (
    "uuid", "name", "parent", "supervisor", "fork", "state", "rate", "sign", "born", "ended", "unread", "tokens", "usd",
    "waits_for", "budget", "owner", "label",
)  # fmt: skip
"""The fields of a row, in order."""

_LATELY = 3.0
"""The last seconds from which rates are computed."""

_LETTERS = 4
"""The approximate number of characters of a token, since services do not count pieces of replies."""

_MOST_MARKS = 20_000
"""The most marks that are kept for pages; a page that needs older marks loads its lanes again."""

_GONE = ("dead", "stopped", "terminating")


class RowChanges(NamedTuple):
    """The rows and marks that have changed since a version."""

    version: int
    rows: list[dict[str, Any]]
    """The changed fields of each row, and its uuid."""
    marks: list[list[Any]]
    """The uuid, position, kind, time and label of each new message."""


@dataclass(slots=True)
class _Row:
    values: dict[str, Any]
    versions: dict[str, int] = field(default_factory=dict)
    changed: int = 0
    turn: int = 0
    head: int = 0
    pieces: list[tuple[float, int]] = field(default_factory=list)  # when each came, and how many characters it has


class LiveRows:
    """The rows of all agents on the observer page, with the version of each field."""

    def __init__(self, epoch: str) -> None:
        """Begin without rows; ``epoch`` names this series of versions."""
        self.epoch = epoch
        self.version = 0
        self._rows: dict[str, _Row] = {}
        self._recent: dict[str, None] = {}  # those that have changed, the latest last
        self._marks: list[tuple[int, list[Any]]] = []
        self._streaming: set[str] = set()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, uuid: str) -> bool:
        return uuid in self._rows

    def table(self) -> tuple[int, list[list[Any]]]:
        """Return the present version, and all rows in order of birth, as lists in the order of `ROW_COLUMNS`."""
        with self._lock:
            return self.version, [list(row.values.values()) for row in self._rows.values()]

    def unplaced(self, glances: Iterable[Glance]) -> list[str]:
        """Return the agents in a turn whose state is not known yet.

        The latest messages of these agents must be read.
        """
        with self._lock:
            return [glance.uuid for glance in glances if glance.turn and not self._head(glance.uuid)]

    def refresh(self, glances: Iterable[Glance], latest: Mapping[str, LogMark]) -> None:
        """Update the rows from the registry, and from the latest messages of the agents that `unplaced` returned."""
        with self._lock:
            self.version += 1
            for glance in glances:
                row = self._rows.get(glance.uuid)
                if row is None:
                    row = self._rows[glance.uuid] = _Row(
                        dict.fromkeys(ROW_COLUMNS), dict.fromkeys(ROW_COLUMNS, self.version)
                    )
                    row.values |= {"state": "idle", "rate": 0, "sign": glance.born}
                row.turn = glance.turn
                known = {name: value for name, value in glance._asdict().items() if name in row.values}
                self._set(glance.uuid, row, {**known, "label": called(glance.uuid, glance.name)})
                self._set(glance.uuid, row, {"state": self._state(row, glance, latest.get(glance.uuid))})

    def hear(self, message: Message, at: int) -> bool:
        """Update an agent's row from a committed message with its time of arrival; False for an unknown agent."""
        with self._lock:
            row = self._rows.get(message.agent_uuid)
            if row is None:
                return False
            self.version += 1
            mark = mark_of(message)
            row.head = max(row.head, message.id)
            changed: dict[str, Any] = {"sign": max(at, message.created_at)}
            if row.values["state"] not in _GONE:
                changed["state"] = state_after(mark, row.values["state"])
            if message.counts_as_request and (spent := spent_of(message)) is not None:
                changed["tokens"] = (row.values["tokens"] or 0) + spent.usage.all_tokens
            self._set(message.agent_uuid, row, changed)
            self._marks.append((self.version, [message.agent_uuid, *mark]))
            if len(self._marks) > _MOST_MARKS:
                del self._marks[: _MOST_MARKS // 2]
            return True

    def stream(self, uuid: str, characters: int, at: int, clock: float) -> None:
        """Count the characters of a piece of a reply for the agent's rate, and show the agent as streaming.

        ``at`` is the time of arrival, in milliseconds since 1970; ``clock`` is monotonic, in seconds.
        """
        with self._lock:
            if (row := self._rows.get(uuid)) is None:
                return
            row.pieces.append((clock, characters))
            self._streaming.add(uuid)
            if row.values["state"] not in _GONE:
                self.version += 1
                self._set(uuid, row, {"state": "streaming", "sign": at})

    def die(self, uuid: str, at: int) -> None:
        """Show an agent as dead. The next reading of the registry adds the details."""
        with self._lock:
            if (row := self._rows.get(uuid)) is not None and row.values["state"] != "dead":
                self.version += 1
                self._set(uuid, row, {"state": "dead", "ended": at, "rate": 0})

    def rename(self, uuid: str, name: str | None) -> None:
        """Show the new name of an agent."""
        with self._lock:
            if (row := self._rows.get(uuid)) is not None:
                self.version += 1
                self._set(uuid, row, {"name": name, "label": called(uuid, name)})

    def set_status(self, uuid: str, status: str) -> None:
        """Show the new status of a living agent.

        The next reading of the registry adds the state of an agent that goes on.
        """
        with self._lock:
            if (row := self._rows.get(uuid)) is not None and row.values["state"] != "dead":
                self.version += 1
                goes_on = "thinking" if row.turn else "idle"
                if status in _GONE or row.values["state"] in _GONE:
                    self._set(uuid, row, {"state": status if status in _GONE else goes_on})

    def add_unread(self, uuid: str) -> None:
        """Add one to the unread mail of an agent. The next reading of the registry corrects the number."""
        with self._lock:
            if (row := self._rows.get(uuid)) is not None:
                self.version += 1
                self._set(uuid, row, {"unread": (row.values["unread"] or 0) + 1})

    def tick(self, clock: float) -> None:
        """Compute the rate of each reply in progress over the last seconds."""
        with self._lock:
            if not self._streaming:
                return
            self.version += 1
            for uuid in list(self._streaming):
                row = self._rows[uuid]
                row.pieces = [piece for piece in row.pieces if piece[0] > clock - _LATELY]
                changed: dict[str, Any] = {"rate": round(sum(size for _, size in row.pieces) / _LETTERS / _LATELY)}
                if not row.pieces:
                    self._streaming.discard(uuid)
                    if row.values["state"] == "streaming":
                        changed["state"] = "thinking" if row.turn else "idle"
                self._set(uuid, row, changed)

    def head(self, uuid: str) -> int:
        """Return the position of the latest known message of an agent; 0 for none."""
        with self._lock:
            return self._head(uuid)

    def since(self, version: int) -> RowChanges:
        """Return the rows, fields and marks that have changed after a version."""
        with self._lock:
            rows = []
            for uuid in reversed(self._recent):
                row = self._rows[uuid]
                if row.changed <= version:
                    break
                fields = {name: row.values[name] for name, at in row.versions.items() if at > version}
                rows.append({"uuid": uuid, **fields})
            marks = []
            for at, mark in reversed(self._marks):
                if at <= version:
                    break
                marks.append(mark)
            return RowChanges(self.version, rows[::-1], marks[::-1])

    def _head(self, uuid: str) -> int:
        row = self._rows.get(uuid)
        return row.head if row is not None else 0

    def _set(self, uuid: str, row: _Row, values: Mapping[str, Any]) -> None:
        changed = {name for name, value in values.items() if row.values[name] != value}
        if not changed:
            return
        for name in changed:
            row.values[name], row.versions[name] = values[name], self.version
        row.changed = self.version
        self._recent.pop(uuid, None)
        self._recent[uuid] = None

    def _state(self, row: _Row, glance: Glance, latest: LogMark | None) -> str:
        if glance.status != "running":
            return glance.status
        if not glance.turn:
            return "idle"
        if glance.waits_for is not None:
            return "budget"
        if glance.cut_off:
            return "interrupted"
        if latest is not None:
            row.head = max(row.head, latest.id)
            return state_after(latest, "thinking")
        before: str = row.values["state"]
        return before if before not in ("idle", "budget", "interrupted", *_GONE) else "thinking"


def mark_of(message: Message) -> LogMark:
    """Return the mark of a message on a timeline."""
    label: str | None = None
    match message.kind:
        case Kind.TOOL_CALL:
            label = message.content[:40]
        case Kind.FORK:
            label = birth_label(message.data)
        case Kind.ASSISTANT if message.data.get("stop_reason") == "tool_use":
            label = "calls"
        case Kind.RETRY | Kind.HOOK if "until" in message.data:
            label = "later"
        case Kind.HOOK if message.data.get("asked"):
            label = "asked"
        case Kind.HOOK if message.data.get("ends"):
            label = "ends"
    return LogMark(message.id, message.kind, message.created_at, label)


def state_at(latest: Iterable[LogMark]) -> str:
    """Return the state of an agent after these messages of its log, the latest first."""
    return next((state for mark in latest if (state := state_after(mark, ""))), "idle")


def state_after(mark: LogMark, before: str) -> str:
    """Return the state of an agent after a message of its turn; ``before`` is the state before the message."""
    match mark.kind:
        case Kind.FORK:
            return "thinking" if mark.label == GOES_ON else before
        case Kind.RETRY if mark.label:
            return "waiting"
        case Kind.USER | Kind.STEER | Kind.TOOL_RESULT | Kind.RETRY | Kind.REPAIR:
            return "thinking"
        case Kind.ASSISTANT:
            return "tool" if mark.label == "calls" else "idle"
        case Kind.TOOL_CALL:
            return "waiting" if mark.label == "wait" else "tool"
        case Kind.APPROVAL:
            return "asking"
        case Kind.HOOK if mark.label:
            return {"asked": "thinking", "later": "waiting"}.get(mark.label, "idle")
        case Kind.CONTEXT:
            return "thinking"
    return "idle" if mark.kind in ENDINGS else before
