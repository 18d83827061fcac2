"""The checks of fsck for logs: takes messages one by one, and returns their faults. Pure.

A result usually belongs to a call of the latest reply of its own log, and a rewind to a mark of its own log. The first
reading checks these references. A reference further back, for example from a child into its parent's log, is checked by
a second reading.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from ikigai_actors.errors import HistoryError
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.fsck.acts import ActCheck
from ikigai_actors.records.fsck.experiments import BookCheck
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.fsck.merges import MergeRow
from ikigai_actors.records.fsck.spendings import NO_COST, Counted
from ikigai_actors.records.fsck.words import WordCheck
from ikigai_actors.records.messages.blob_references import blobs_of
from ikigai_actors.records.messages.messages import OPENINGS, SPENDING, Kind, Message
from ikigai_actors.records.messages.replies import reply_of, spent_of
from ikigai_actors.records.messages.settings import misfits
from ikigai_actors.store.base import Row

UNREADABLE = (HistoryError, AttributeError, RecursionError, TypeError, ValueError)
"""The exceptions that invalid data may cause."""


class _Reference(NamedTuple):
    """A message that refers to a mark or a call which it does not directly follow."""

    agent: str
    position: int
    kind: str
    target: str


class LogCheck:
    """Checks the messages of all logs, in order. Faults that depend on later messages are found at the end.

        for row in …: logs.read(row)              every message
        if logs.conclude():                       a reference is left whose place was not just read
            for row in …: logs.resolve(row)       every message again
            logs.report_unresolved()

    The constructor gets the agents of the registry.
    """

    def __init__(self, records: Mapping[str, AgentRecord], rooted: set[str]) -> None:
        self.found: list[Violation] = []
        self.messages = 0
        self.blobs: dict[str, tuple[str, int]] = {}
        self.questions: dict[str, tuple[str, int]] = {}
        """The first message that refers to each blob: its agent and its position."""
        self.counted: dict[str, Counted] = {}
        """The costs of requests in the messages of each agent."""
        self._books = BookCheck()
        self._acts = ActCheck()
        self.words = WordCheck()
        """The words in the logs."""
        self.merges: set[MergeRow] = set()
        """The merges that messages name."""
        self.merges_elsewhere: set[MergeRow] = set()
        """The ancestors among them that may have no row: the agent came from a file, and the merged one did not."""
        self._records, self._rooted = records, rooted
        self._heads = {uuid: record.fork_message_id for uuid, record in records.items()}
        self._holes: dict[str, list[range]] = {}  # positions of which nothing is known
        self._unborn: set[str] = set()  # agents whose log begins with something else than their own fork
        self._past: set[str] = set()  # agents forked past their parent's head
        self._openers: dict[str, str] = {}  # agent → kind of the message that its open turn began with
        self._due = {
            (record.parent_uuid, record.born, record.uuid)
            for record in records.values()
            if record.parent_uuid is not None and record.uuid in rooted and not self.is_pruned(record.parent_uuid)
        }
        self._births: set[tuple[object, int, str]] = set()  # what ``fork`` messages of makers say
        self._makers: dict[str, object] = {}  # agents that another one than their parent has made, which they name
        self._told: list[tuple[AgentRecord, Message, object]] = []  # the fork points in ``fork`` messages
        self._strays: list[tuple[str, int, object]] = []  # ``fork`` messages that nobody was due
        self._references: list[_Reference] = []
        self._wanted: dict[str, list[_Reference]] = {}
        self._ancestors: set[str] = set()  # in whose logs it may be
        self._lenses: dict[str, None] = {}  # agents whose own log has a summary, or the end of one
        self._uuid, self._next = "", 0  # the log that is being read, and the position that should come
        self._calls: set[str] = set()  # of its latest reply
        self._marks: set[str] = set()

    def _report(self, invariant: Invariant, agent: str, text: str) -> None:
        self.found.append(Violation(invariant, agent, text))

    def read(self, row: Row) -> None:
        """Check one message, in the order of logs and positions."""
        uuid, position, kind = row[:3]
        self.messages += 1
        record = self._records.get(uuid)
        if uuid != self._uuid:
            self._uuid, self._calls, self._marks = uuid, set(), set()
            self._next = position if record is None else record.fork_message_id + 1
            if record is None:
                self._report(Invariant.LOG, uuid, "expected it to exist, since it has a log; there is no such agent")
        if record is None or record.pruned_at is not None:  # a prune that was cut off has left it
            return
        if position != self._next:
            self._report(Invariant.POSITION, uuid, f"expected message {self._next} next in its log, got {position}")
            self._holes.setdefault(uuid, []).append(range(*sorted((self._next, position))))
        self._next = position + 1
        self._heads[uuid] = max(position, self._heads[uuid])
        if row[5] <= 0:
            self._report(Invariant.TIME, uuid, f"expected message {position} to have a time above 0, got {row[5]}")
        if record.turn == position:
            self._openers[uuid] = kind
        if position == record.fork_message_id + 1 and record.parent_uuid is not None and kind != Kind.FORK:
            self._unborn.add(uuid)
        try:
            self._understand(Message.from_row(row), record)
        except UNREADABLE as error:
            what = str(error) if isinstance(error, HistoryError) else f"it cannot be read: {error!r}"
            self._report(Invariant.DATA, uuid, f"expected message {position} to have the data of its kind. {what}")
            self._holes.setdefault(uuid, []).append(range(position, position + 1))

    def _understand(self, message: Message, record: AgentRecord) -> None:
        for text in self._books.read(message):
            self._report(Invariant.EXPERIMENT, record.uuid, text)
        if message.kind in SPENDING and (spent := spent_of(message)) is not None:
            before = self.counted.get(record.uuid, NO_COST)
            self.counted[record.uuid] = Counted(
                before.requests + 1, before.positions + message.id, before.tokens + spent.usage.all_tokens
            )
        for text in self.words.read(message):
            self._report(Invariant.WORD, record.uuid, text)
        for text in self._acts.read(message):
            self._report(Invariant.ACT, record.uuid, text)
        for blob in blobs_of(message):
            self.blobs.setdefault(blob.sha256, (record.uuid, message.id))
        if message.kind == Kind.APPROVAL and record.imported_at is None and "definition" in message.data:
            self.questions.setdefault(str(message.data["definition"]), (record.uuid, message.id))
        match message.kind:
            case Kind.CONFIGURE:
                for text in misfits(message.data).values():
                    self._report(Invariant.DATA, record.uuid, f"message {message.id}: {text}")
            case Kind.ASSISTANT:
                self._calls = anchors(message)
            case Kind.MARK:
                self._marks |= anchors(message)
            case Kind.SUMMARY | Kind.UNCOMPACT:
                self._lenses[record.uuid] = None
            case Kind.MERGE:
                merged = MergeRow(record.uuid, message.data.get("from"), message.data.get("head"), message.id)
                self.merges.add(merged)
                if record.grafted or self._came_without(record, merged.child):
                    self.merges_elsewhere.add(merged)
            case Kind.REWIND if "before" in message.data:
                self._refer(message, f"prompt {message.data.get('before')!r}")
            case Kind.REWIND:
                self._refer(message, f"mark {message.data.get('mark')!r}")
            case Kind.HOOK if "tool_use_id" not in message.data:
                pass  # of a request, or a reply
            case Kind.TOOL_CALL | Kind.TOOL_RESULT | Kind.APPROVAL | Kind.HOOK:
                self._refer(message, f"call {message.data.get('tool_use_id')!r}")
            case Kind.FORK if record.grafted and not self._tells_of_birth(message):
                self._make(record, message)  # else it names agents that are elsewhere
            case Kind.FORK if "parent" in message.data:  # the child's side
                self._told.append((record, message, message.data.get("at", record.fork_message_id)))
                if record.turn == message.id and message.data.get("go") is not True:
                    text = f"expected its open turn to begin with a fork that says go; message {message.id} does not"
                    self._report(Invariant.TURN, record.uuid, text)
                parent = message.data["parent"]
                if "by" in message.data:
                    self._makers[record.uuid] = message.data["by"]
                if parent != record.parent_uuid and record.uuid in self._rooted:
                    text = f"expected message {message.id} to name its parent {record.parent_uuid}, it names {parent!r}"
                    self._report(Invariant.FORK_MESSAGE, record.uuid, text)
            case Kind.FORK:
                child = message.data.get("child")
                self._make(record, message)
                if isinstance(child, str) and (record.uuid, message.id, child) in self._due:
                    self._due.remove((record.uuid, message.id, child))
                    self._told.append((self._records[child], message, message.data.get("at", message.id - 1)))
                else:
                    self._strays.append((record.uuid, message.id, child))

    def _make(self, record: AgentRecord, message: Message) -> None:
        """Record the birth of a child that the agent has made from another agent's history, if the message has one."""
        child = message.data.get("child")
        if "of" in message.data and isinstance(child, str):
            self._births.add((record.uuid, message.id, child))

    def _came_without(self, record: AgentRecord, child: object) -> bool:
        """Return whether an agent was imported, and a child was neither in the same file nor born here later."""
        other = self._records.get(child) if isinstance(child, str) else None
        if record.imported_at is None or other is None or other.stands_in:
            return record.imported_at is not None
        return other.imported_at != record.imported_at and other.created_at < record.imported_at

    def _tells_of_birth(self, message: Message) -> bool:
        return (message.agent_uuid, message.id, message.data.get("child")) in self._due

    def _refer(self, message: Message, target: str) -> None:
        if target not in self._calls and target not in self._marks:
            self._references.append(_Reference(message.agent_uuid, message.id, message.kind, target))

    def conclude(self) -> bool:
        """Make the checks that are possible after one reading of all logs.

        Return whether the logs must be read again.
        """
        self._check_fork_points()
        self._check_fork_messages()
        self._check_births()
        self._check_turns()
        for reference in self._references:
            if self._is_sound(reference.agent):
                self._wanted.setdefault(reference.target, []).append(reference)
                self._ancestors.update(self._lineage(reference.agent))
        return bool(self._wanted)

    def resolve(self, row: Row) -> None:
        """Resolve earlier references to this message, if it is a reply, a mark or a prompt."""
        uuid, position, kind = row[:3]
        if uuid not in self._ancestors or kind not in (Kind.ASSISTANT, Kind.MARK, Kind.USER):
            return
        try:
            targets = anchors(Message.from_row(row))
        except UNREADABLE:  # reported by the first reading
            return
        for target in targets & self._wanted.keys():
            self._wanted[target] = [
                reference
                for reference in self._wanted[target]
                if position >= reference.position or self._holder(reference.agent, position) != uuid
            ]

    def report_unresolved(self) -> None:
        """Report the references for which no message was found."""
        for reference in sorted(reference for waiting in self._wanted.values() for reference in waiting):
            agent, position, kind, target = reference
            invariant = Invariant.REWIND if kind == Kind.REWIND else Invariant.CALL
            text = (
                f"expected message {position}, a {kind}, to name something earlier in its lineage; there is no {target}"
            )
            self._report(invariant, agent, text)

    @property
    def heads(self) -> Mapping[str, int]:
        """Return the position of the latest message of each agent."""
        return self._heads

    def with_lenses(self) -> list[str]:
        """Return the agents whose summaries can be checked, because all their messages could be read."""
        return [uuid for uuid in self._lenses if self._is_sound(uuid)]

    def forked_earlier(self) -> list[AgentRecord]:
        """Return the agents forked at an earlier position of their parent, whose history could be read."""
        return [
            record
            for uuid, record in self._records.items()
            if (record.born > record.fork_message_id + 1 or uuid in self._makers)
            and record.pruned_at is None
            and uuid not in self._past
            and self._is_sound(uuid)
        ]

    def _check_fork_points(self) -> None:
        for uuid, record in self._records.items():
            parent = record.parent_uuid
            if parent is None or uuid not in self._rooted or self.is_pruned(parent):
                continue
            if record.fork_message_id > self._heads[parent]:
                self._past.add(uuid)
                text = f"expected its fork point to be at most {self._heads[parent]}, the head of its parent {parent}; "
                self._report(Invariant.FORK_POINT, uuid, f"{text}got {record.fork_message_id}")

    def _check_fork_messages(self) -> None:
        for uuid, maker in self._makers.items():  # it was born in the log of its maker
            made = self._records[uuid]
            self._due.discard((str(made.parent_uuid), made.born, uuid))
            if self._came_without(made, maker):
                continue
            if (maker, made.born, uuid) not in self._births and not self.is_pruned(str(maker)):
                text = f"expected message {made.born} of {maker!r}, its maker, to be the fork that made it; it is not"
                self._report(Invariant.FORK_MESSAGE, uuid, text)
        self._strays = [stray for stray in self._strays if not self._is_made(*stray)]
        for uuid, position, child in self._strays:
            record = self._records.get(child) if isinstance(child, str) else None
            text = f"expected message {position} to name an agent that was born there; it names "
            if record is None:
                self._report(Invariant.FORK_MESSAGE, uuid, f"{text}{child!r}, and there is no such agent")
            elif record.uuid in self._rooted - self._past:
                where = f"which was born at {record.born} of {record.parent_uuid}"
                self._report(Invariant.FORK_MESSAGE, uuid, f"{text}{child}, {where}")
        for child, message, fork_position in self._told:
            if fork_position != child.fork_message_id and child.uuid in self._rooted - self._past:
                text = f"expected message {message.id} of {message.agent_uuid} to record its fork point, "
                self._report(
                    Invariant.FORK_AT, child.uuid, f"{text}{child.fork_message_id}; it records {fork_position!r}"
                )
        named = {child for _, _, child in self._strays if isinstance(child, str)}
        taken = {(uuid, position) for uuid, position, _ in self._strays}
        for uuid, position, unborn in sorted(self._due):
            known = unborn in named or (uuid, position) in taken or self.is_pruned(unborn)  # who made that is gone
            if not (known or unborn in self._past or self.is_unknown(uuid, position)):
                text = f"expected message {position} of its parent {uuid} to be the fork that made it; it is not"
                self._report(Invariant.FORK_MESSAGE, unborn, text)

    def _is_made(self, maker: str, position: int, child: object) -> bool:
        """Return whether a maker's log records at a position that it made a child, and the child's log agrees.

        An imported maker may have come without the child, which another agent had adopted.
        """
        if not isinstance(child, str):
            return False
        if (maker, position, child) in self._births and self._came_without(self._records[maker], child):
            return True
        if child not in self._records or self._records[child].born != position:
            return False
        pruned = self.is_pruned(child) and (maker, position, child) in self._births
        return pruned or self._makers.get(child) == maker

    def _check_births(self) -> None:
        for uuid, record in self._records.items():
            if record.parent_uuid is None or record.pruned_at is not None or uuid in self._past or uuid in self._holes:
                continue
            if self._heads[uuid] == record.fork_message_id:
                text = "expected its log to begin with the fork that made it; it has no message"
                self._report(Invariant.FORK_MESSAGE, uuid, text)
            elif uuid in self._unborn:
                text = f"expected message {record.fork_message_id + 1} to be the fork that made it; it is not"
                self._report(Invariant.FORK_MESSAGE, uuid, text)

    def _check_turns(self) -> None:
        for uuid, record in self._records.items():
            if not record.turn or not record.living:
                continue
            kind = self._openers.get(uuid)
            if kind is not None and kind not in OPENINGS:
                text = "expected its open turn to begin with a user, tool_result or fork message; "
                self._report(Invariant.TURN, uuid, f"{text}message {record.turn} is of kind {kind!r}")
            elif kind is None and not self.is_unknown(uuid, record.turn):
                text = (
                    f"expected its open turn to begin with a message of its own log; there is no message {record.turn}"
                )
                self._report(Invariant.TURN, uuid, text)

    def is_pruned(self, uuid: str) -> bool:
        """Return whether the messages of an agent were pruned."""
        record = self._records.get(uuid)
        return record is not None and record.pruned_at is not None

    @property
    def unknown(self) -> Collection[str]:
        """Return the agents of which some messages are not known."""
        return self._holes.keys()

    def is_unknown(self, uuid: str, position: int) -> bool:
        """Return whether the message at a position of an agent's own log is not known."""
        return any(position in hole for hole in self._holes.get(uuid, ()))

    def _is_sound(self, uuid: str) -> bool:
        """Return whether every message of an agent up to its head could be read."""
        return uuid in self._rooted and not any(
            ancestor in self._holes or ancestor in self._past for ancestor in self._lineage(uuid)
        )

    def _lineage(self, uuid: str) -> Iterator[str]:
        """Iterate over an agent and its ancestors, the nearest first. The lineage must reach agent 0."""
        current: str | None = uuid
        while current is not None:
            yield current
            current = self._records[current].parent_uuid

    def _holder(self, uuid: str, position: int) -> str:
        return next(
            (ancestor for ancestor in self._lineage(uuid) if position > self._records[ancestor].fork_message_id), uuid
        )


def anchors(message: Message) -> set[str]:
    """Return keys for the parts of a message to which later messages may refer.

    A mark and a prompt have their position, and a reply has the ids of its calls.
    """
    if message.kind == Kind.MARK:
        return {f"mark {message.id!r}"}
    if message.kind == Kind.USER:
        return {f"prompt {message.id!r}"}
    return {f"call {call.id!r}" for call in reply_of(message).tool_calls}
