"""Export: a branch of agents, with all their data, as the records of a file. A host may run meanwhile.

All rows are read in one snapshot, some at a time, so a branch of any size needs little memory. History that agents
inherit from a parent outside of the branch is exported once for each such parent, as the log of an origin
(`Inheritance`): the messages of the parent's history up to the furthest fork point, with their positions. Cleared
messages among them may be more than the branch can see (`Inheritance.hidden`). With ``from_clear`` empty messages take
their place.
"""

import base64
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.lists import own_counts_of
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.agents.rules import rules_among
from ikigai_actors.records.budgets.spendings import kept_labels, spendings_of
from ikigai_actors.records.log.lineage import check_unpruned, read_lineage
from ikigai_actors.records.mail.mail import all_mail
from ikigai_actors.records.messages.blobs import hashes_in, read_blobs
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.once import kept_calls
from ikigai_actors.records.transfer.format import (
    FORMAT,
    LEFT_OUT,
    ORIGIN,
    RECORDS,
    data_object,
    exported_data,
    file_lines,
)
from ikigai_actors.records.transfer.keys import exported_answer
from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.store.migrations import newest
from ikigai_actors.store.new_file import new_file

Fields = dict[str, Any]

_COUNTED = ("agent", "message", "mail", "document", "blob")

_AT_ONCE = 2_000
"""Messages that are read together."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The numbers of records that an export has written."""

    agents: int
    messages: int
    """The number of messages, including those that the agents inherit from outside."""
    mails: int
    documents: int
    """The number of versions of documents."""
    blobs: int
    """The number of attachments."""
    hidden: int
    """The number of inherited messages that the agents cannot see because they were cleared. They are in the file,
    unless left out.
    """


def export_file(
    store: Store,
    agent: str,
    file: Path,
    *,
    now: int,
    from_clear: bool = False,
    notice: Callable[[str], object] = lambda text: None,
    advance: Callable[[int, int], object] = lambda done, total: None,
) -> Exported:
    """Write an agent and all below it, by lineage or supervision, to a new file.

    Args:
        store: the database; a host may run meanwhile.
        agent: a uuid, name, or unique prefix of a uuid.
        file: the new file, which only its user may read.
        now: the time that the file names, in milliseconds since 1970.
        from_clear: leave out inherited messages that the agents cannot see.
        notice: is called before writing, with a line about messages in the file that the agents cannot see.
        advance: is called with the number of written records, and the number of all.

    Raises:
        AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
        HistoryPruned: the messages of the agent were pruned.
        BadInput: there is a file at that path already, or it cannot be written.
    """
    with new_file(file, "an export") as part:

        def work(tx: Transaction) -> Exported:
            branch = Branch(tx, agent, from_clear)
            hidden = sum(origin.hidden for origin in branch.origins.values())
            if hidden and not from_clear:
                notice(
                    f"{hidden:,} messages that were cleared before the fork go along, though the exported agents "
                    "cannot see them; --from-clear leaves them out."
                )
            part.seek(0)  # it may be read again
            part.truncate()
            counts = branch.counts()
            part.writelines(_counted(file_lines(branch.records(counts, now)), sum(counts.values()), advance))
            agents, messages, mails, documents, blobs = (counts[kind] for kind in _COUNTED)
            return Exported(agents, messages, mails, documents, blobs, 0 if from_clear else hidden)

        return store.read(work)


def _counted(lines: Iterable[bytes], total: int, advance: Callable[[int, int], object]) -> Iterator[bytes]:
    """Yield the lines, and report the progress of the export from time to time. Header and end are not counted."""
    for done, line in enumerate(lines):
        if done % _AT_ONCE == 0:
            advance(min(done, total), total)
        yield line


@dataclass(frozen=True, slots=True)
class Inheritance:
    """The history that agents of a branch inherit from an agent outside of it."""

    agents: tuple[AgentRecord, ...]
    """The agents that inherit it. In the file, its log has the name of the first."""
    parts: tuple[tuple[str, int, int], ...]
    """The ranges where it is stored, oldest first: ``(uuid, start, end)``; empty for pruned agents."""
    end: int
    """The furthest fork point; 0 for pruned agents."""
    births: Mapping[int, AgentRecord]
    """The agent born at each position of a ``fork``. Those after the end are made for the file, in order."""
    seen: Mapping[int, int]
    """The first and the last position of each range that some agent of the branch sees. The ranges do not overlap."""

    def shows(self, position: int) -> bool:
        """Return whether an inherited message is needed in the file even if hidden messages are left out.

        A message is needed if an exported agent sees it, or if it names an agent.
        """
        return position in self.births or self._is_seen(position)

    def _is_seen(self, position: int) -> bool:
        return any(start <= position <= end for start, end in self.seen.items())

    @property
    def hidden(self) -> int:
        """Return the number of inherited messages that no exported agent sees.

        The messages were cleared before the fork points of all agents that inherit them.
        """
        seen = sum(end - start + 1 for start, end in self.seen.items())
        return self.end - seen - sum(birth <= self.end and not self._is_seen(birth) for birth in self.births)


class Branch:
    """The agents that one export writes, read within a transaction."""

    def __init__(self, tx: Transaction, agent: str, from_clear: bool) -> None:
        self._tx = tx
        self.top = registry.find(tx, agent)
        check_unpruned(self.top.uuid, self.top.pruned_at)
        belonging = registry.some(tx, registry.uuids_belonging(tx, self.top.uuid))
        self.agents = {record.uuid: record for record in _parents_first(registry.oldest_first(belonging))}
        self._names: dict[str | None, str] = {record.uuid: record.short for record in belonging}
        heirs: dict[tuple[str, bool], list[AgentRecord]] = {}
        for member in self.agents.values():
            if member.parent_uuid is not None and member.parent_uuid not in self.agents and not member.grafted:
                heirs.setdefault((member.parent_uuid, member.pruned_at is not None), []).append(member)
        self.origins = {some[0].uuid: self._origin(some) for some in heirs.values()}
        """By the uuids of the agents after which they are named."""
        self._parents = {
            relative.uuid: ORIGIN + uuid for uuid, origin in self.origins.items() for relative in origin.agents
        }
        self._own = own_counts_of(tx, self.agents)
        pruned = tx.run("pruned_hashes_of", uuids=list(self.agents))
        self._pruned_hashes: dict[str, str] = {uuid: stored.hex() for uuid, stored in pruned}
        self._from_clear = from_clear

    def counts(self) -> Counter[str]:
        """Return the number of records of each kind."""
        return Counter(kind for kind, _ in self._contents())

    def records(self, counts: Mapping[str, int], now: int) -> Iterator[tuple[str, Fields]]:
        """Iterate over all records except the end."""
        yield (
            "header",
            {
                "format": FORMAT,
                "program": f"ikigai-actors {version('ikigai-actors')}",
                "schema": newest(),
                "exported_at": now,
                "top": self.top.uuid,
                "counts": {kind: counts.get(kind, 0) for kind in RECORDS if kind not in ("header", "end")},
                "left_out": list(LEFT_OUT),
            },
        )
        yield from self._contents()

    def _origin(self, agents: list[AgentRecord]) -> Inheritance:
        """Return the history that these agents inherit from one parent outside the branch.

        Either all of these agents are pruned, or none.
        """
        if agents[0].pruned_at is not None:
            return Inheritance(tuple(agents), (), 0, {}, {})
        furthest = max(agents, key=lambda agent: agent.fork_message_id)
        end = furthest.fork_message_id
        ordered = sorted((agent for agent in agents if not self._made_by_another(agent)), key=lambda agent: agent.born)
        births = {agent.born: agent for agent in ordered if agent.born <= end}
        births |= dict(enumerate((agent for agent in ordered if agent.born > end), end + 1))
        parts = self._inherited(furthest)
        return Inheritance(tuple(agents), parts, end, births, self._seen(agents, parts))

    def _made_by_another(self, record: AgentRecord) -> bool:
        """Return whether another agent than its parent has made an agent, so that the birth is in that agent's log."""
        first = self._section(record.uuid, record.fork_message_id, record.fork_message_id + 1)
        return any("by" in (data_object(row[4]) or {}) for row in first)

    def _inherited(self, of: AgentRecord) -> tuple[tuple[str, int, int], ...]:
        """Return where the history that an agent inherits is stored, oldest part first, as ``(uuid, start, end)``."""
        parts: list[tuple[str, int, int]] = []
        bound = of.fork_message_id
        for ancestor in read_lineage(self._tx, of.uuid, whole=True)[1:]:
            if ancestor.fork_message_id < bound:
                parts.append((ancestor.uuid, ancestor.fork_message_id, bound))
                bound = ancestor.fork_message_id
        return tuple(parts[::-1])

    def _seen(self, agents: list[AgentRecord], parts: tuple[tuple[str, int, int], ...]) -> dict[int, int]:
        """Return the ranges of a history that some of these agents see, from a clear to the last fork point."""
        rows = self._tx.run("controls_in", uuids=[uuid for uuid, _, _ in parts]) if parts else []
        ends = {uuid: (start, end) for uuid, start, end in parts}
        clears = [row[1] for row in rows if row[2] == Kind.CLEAR and ends[row[0]][0] < row[1] <= ends[row[0]][1]]
        bounds = {agent.uuid: agent.fork_message_id for agent in agents}
        for agent in self.agents.values():  # parents first
            if (above := bounds.get(agent.parent_uuid or "")) is not None:
                bounds[agent.uuid] = min(above, agent.fork_message_id)
        seen: dict[int, int] = {}
        for bound in sorted(set(bounds.values())):
            cleared = bisect(clears, bound)
            seen[clears[cleared - 1] if cleared else 1] = bound
        return seen

    def _contents(self) -> Iterator[tuple[str, Fields]]:
        for uuid in self.origins:
            yield "origin", {"of": uuid, "outside": self.called(self.agents[uuid].parent_uuid)}
        for agent in self.agents.values():
            yield "agent", self._agent(agent)
        for rule, created_at in rules_among(self._tx, self.agents):
            yield (
                "rule",
                {
                    "agent": rule.agent, "id": rule.id, "decision": rule.decision.value, "tool": rule.tool,
                    "pattern": rule.pattern, "scope": rule.scope.value, "created_at": created_at,
                },
            )  # fmt: skip
        blobs: dict[str, None] = {}
        for kind, fields in self.texts():
            data = fields.get("data")
            if isinstance(data, dict):
                blobs.update(dict.fromkeys(hashes_in(data)))
            yield kind, fields
        yield from self._documents()
        for row in self._tx.run("merges_among", uuids=list(self.agents)):
            yield "merge", dict(zip(RECORDS["merge"], row, strict=True))
        yield from self._spendings()
        yield from self._keyed_calls()
        media: dict[str, str] = dict(self._tx.run("media_of_blobs", hashes=sorted(blobs)))
        for sha256 in blobs:
            for data in read_blobs(self._tx, [sha256]).values():
                yield "blob", {"sha256": sha256, "media": media[sha256], "bytes": base64.b64encode(data).decode()}

    def _agent(self, record: AgentRecord) -> Fields:
        elsewhere = ("parent", "supervisor", "pruned_hash")
        fields = {name: getattr(record, name) for name in RECORDS["agent"] if name not in elsewhere}
        fields["pruned_hash"] = self._pruned_hashes.get(record.uuid)
        fields["parent"] = self._parents.get(record.uuid, self._within(record.parent_uuid))
        fields["supervisor"] = self._within(record.supervisor_uuid)
        fields["exit_sender"] = self._within(record.exit_sender)
        return fields

    def texts(self) -> Iterator[tuple[str, Fields]]:
        """Iterate over the records of messages and mail."""
        for uuid, origin in self.origins.items():
            for row in (row for part in origin.parts for row in self._section(*part)):
                left_out = self._from_clear and not origin.shows(row[1])
                shown = (uuid, row[1], Kind.OMITTED, "", None, row[5], row[6]) if left_out else row
                yield "message", _message(ORIGIN + uuid, shown)
            for position, birth in origin.births.items():
                if position > origin.end:
                    yield "message", _message(ORIGIN + uuid, (*_birth(position, birth), None))
        for agent in self.agents.values():
            if agent.pruned_at is None:
                end = agent.fork_message_id + self._own[agent.uuid]
                for row in self._section(agent.uuid, agent.fork_message_id, end):
                    yield "message", _message(agent.uuid, row)
        for uuid in self.agents:
            for recipient, number, sender, kind, body, created_at, read_at, data in self._mail(uuid):
                yield (
                    "mail",
                    {
                        "recipient": recipient, "id": number, "sender": self._within(sender),
                        "outside": self._outside(sender), "kind": kind, "body": body, "created_at": created_at,
                        "read_at": read_at, "data": exported_data(data),
                    },
                )  # fmt: skip

    def _mail(self, uuid: str) -> list[Row]:
        """Return the mail of an agent; none for a pruned agent, whose last rows may not be deleted yet."""
        return all_mail(uuid, self._tx) if self.agents[uuid].pruned_at is None else []

    def _section(self, uuid: str, start: int, end: int) -> Iterator[Row]:
        for low in range(start, end, _AT_ONCE):
            yield from self._tx.run("hashed_section", uuid=uuid, start=low, end=min(low + _AT_ONCE, end))

    def _documents(self) -> Iterator[tuple[str, Fields]]:
        for path, number, author, body, created_at in self._tx.run("documents_by", uuids=list(self.agents)):
            yield (
                "document",
                {
                    "path": path, "version": number, "author": self._within(author), "outside": self._outside(author),
                    "body": body, "created_at": created_at,
                },
            )  # fmt: skip

    def _spendings(self) -> Iterator[tuple[str, Fields]]:
        sets = kept_labels(self._tx)
        for uuid in self.agents:
            for row in spendings_of(self._tx, uuid):
                yield (
                    "spending",
                    {
                        "agent": uuid, "id": row.id, "labels": sets.get(row.labels, {}), "created_at": row.created_at,
                        "tokens": row.tokens, "usd": row.usd,
                    },
                )  # fmt: skip

    def _keyed_calls(self) -> Iterator[tuple[str, Fields]]:
        for call in kept_calls(self._tx, self.agents):
            if (gave := exported_answer(call.gave)) is not None:
                yield (
                    "keyed_call",
                    {
                        "scope": call.scope, "key": call.key, "agent": self._within(call.agent), "verb": call.verb,
                        "asked": call.digest, "about": call.about, "gave": gave, "created_at": call.at,
                    },
                )  # fmt: skip

    def _within(self, uuid: str | None) -> str | None:
        return uuid if uuid in self.agents else None

    def _outside(self, uuid: str | None) -> str | None:
        return None if uuid is None or uuid in self.agents else self.called(uuid)

    def called(self, uuid: str | None) -> str:
        """Return the name of an agent for people."""
        if uuid is not None and uuid not in self._names:
            self._names[uuid] = next((record.short for record in registry.some(self._tx, [uuid])), uuid)
        return self._names.get(uuid, str(uuid))


def _birth(position: int, of: AgentRecord) -> Row:
    """Return the ``fork`` message in an origin's log for an agent that the parent made later."""
    at = {} if of.fork_message_id == position - 1 else {"at": of.fork_message_id}
    return Message("", position, Kind.FORK, "", {"child": of.uuid, **at}, of.created_at).row()


def _message(agent: str, row: Row) -> Fields:
    _, position, kind, content, data, created_at, stored = row
    return {
        "agent": agent, "id": position, "kind": str(kind), "content": content, "data": exported_data(data),
        "created_at": created_at, "hash": None if stored is None else stored.hex(),
    }  # fmt: skip


def _parents_first(records: list[AgentRecord]) -> list[AgentRecord]:
    """Return the agents in order of birth, but each after its parent even if their clocks were wrong."""
    known = {record.uuid for record in records}
    children: dict[str | None, list[AgentRecord]] = {}
    for record in records:
        children.setdefault(record.parent_uuid if record.parent_uuid in known else None, []).append(record)
    ordered: list[AgentRecord] = []
    waiting = children.pop(None, [])[::-1]
    while waiting:
        record = waiting.pop()
        ordered.append(record)
        waiting += sorted(children.get(record.uuid, ()), key=lambda child: child.born, reverse=True)
    return ordered
