"""Import: adds the agents of an exported file below an agent, all in one transaction, or none.

The file is read twice. Before the transaction, its own faults are found (`Manifest`). Within the transaction, its rows
are written to the tables one after another. Then they are read back: their sums must be those of the file, and fsck's
checker must find no fault in them. Otherwise everything is undone.

| in the file | here |
|---|---|
| a uuid that an agent here has | another one, in every field and message that names it; never in texts |
| the uuid of a parent outside | that of the dead one in its place, unless an agent here has it |
| the name of an agent that lives here | with ``-2`` |
| an origin, and any agent 0 | below the agent under which they come, at fork point 0: they inherit nothing from it |
| a supervisor outside | the agent under which they come |
| an open turn | interrupted, as after a boot |
| an approval in an open turn, a rule that allows calls | dropped (`rights`) |
| the other rules of an agent | its rules, numbered from 1 |
| the keys of an agent | its keys, unless it has another uuid here (`keys`) |
| an agent in which an open turn or a prompt waits | stopped, unless the import says ``go`` |
| an agent that was terminating | dead; those that it supervised have the next living one above |
| an agent of a file that comes stopped | stopped: it begins nothing until CONT, whatever waits for it |
| a document that is here with these bodies | left as it is; with others: refused, or as `Documents` says |

An imported agent may not use tools that the settings of the agent above it forbid: a ``configure`` at the end of its
log says so.

Budgets are not imported. The agents' earlier spending does not count in the budgets here, but the agents count as
living.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.arguments import check_choice, check_flag
from ikigai_actors.errors import AgentDead, BadInput, HostElsewhere, ImportRefused, StoreConflict
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import NAME_LENGTH, RandomBytes, new_agent_uuid
from ikigai_actors.records.agents.labels import check_labels, set_id, set_of
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.agents.rules import write_rule
from ikigai_actors.records.budgets.ledger import BudgetLedger, Hearers, hearers
from ikigai_actors.records.budgets.spendings import keep_labels
from ikigai_actors.records.fsck.check import judge
from ikigai_actors.records.log.chain import EMPTY_HASH, hash_after
from ikigai_actors.records.log.heads import section
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.settings import complaint
from ikigai_actors.records.proof.chain_check import fork_points
from ikigai_actors.records.questions.questions import write_questions
from ikigai_actors.records.questions.waiting import question_of, waiting_calls
from ikigai_actors.records.transfer.format import ORIGIN, Record, RecordFile, data_object, data_text, read_file
from ikigai_actors.records.transfer.manifest import Manifest, blob_bytes, hash_bytes, log_starts
from ikigai_actors.records.transfer.rights import counts, earlier_rules, restricted, without_rights
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.copy import TableSum
from ikigai_actors.store.unit import Addressed, LockedRows, TreeLock
from ikigai_actors.tools.rules.rule import NewRule, check_rule
from supervisors.causes import Cause
from supervisors.orphans import OrphanPolicy, ways
from supervisors.signals import Status

DOCUMENTS = ("refuse", "keep", "append")
"""The ways to treat a document that exists with other bodies: the import is refused; the document is kept; or the
versions of the file are appended.
"""

_BATCH = 1_000
"""Rows that are written together."""

_MESSAGES = ("agent_uuid", "id", "kind", "content", "data", "created_at", "hash")
_RULES = ("agent_uuid", "id", "decision", "tool", "pattern", "scope", "created_at")
_MAIL = ("recipient", "id", "sender", "kind", "body", "created_at", "read_at", "data")
_DOCUMENTS = ("path", "version", "author", "body", "created_at")
_MERGES = ("into_uuid", "from_uuid", "from_head", "message", "created_at")
_SPENDINGS = ("agent_uuid", "id", "labels", "created_at", "tokens", "usd")
_CALLS = ("scope", "key", "agent", "verb", "asked", "about", "gave", "at")
_BLOBS = ("sha256", "media", "bytes")
_COLUMNS = (
    "uuid", "name", "parent_uuid", "supervisor_uuid", "fork_message_id", "status", "turn", "restart", "exit_reason",
    "created_at", "ended_at", "epoch", "on_orphan", "strategy", "intensity", "period", "deadline", "exit_cause",
    "exit_sender", "mailed", "unread", "shard", "born", "budget", "spent_tokens", "spent_usd", "imported_at",
    "pruned_at", "branch", "pruned_hash", "labels", "awake", "cut_off",
)  # fmt: skip


class Imported(NamedTuple):
    """The agents that were imported."""

    top: str
    """The uuid of the topmost agent of the export."""
    agents: tuple[AgentRecord, ...]
    """All imported agents, without origins."""
    heads: Mapping[str, int]
    """The position of the latest message of each, by uuid."""
    renewed: Mapping[str, str]
    """The new uuids of agents whose uuids existed already, by the uuid in the file."""
    rehashed: int
    """The number of messages whose hash differs from the file, because uuids in them, or before them, were replaced."""
    version: int
    """The version of the tree."""


_COUNTED = 1_000
"""The number of records between two reports of an import's progress."""


@dataclass(frozen=True, slots=True)
class ImportFile:
    """A file that was checked before anything is written."""

    path: Path
    manifest: Manifest
    records: Callable[[], Iterable[Record]]
    """Iterates over the records of the file."""
    documents: str
    stopped: bool = False
    """Whether all agents are stopped after the import."""
    go: bool = False
    """Whether agents with waiting work may begin at once."""
    advance: Callable[[int, int], object] = field(default=lambda done, total: None, compare=False)
    """Is called with the number of imported records, and the number of all."""

    @staticmethod
    def of(file: Path | RecordFile, documents: str = "refuse", stopped: bool = False, go: bool = False) -> "ImportFile":
        """Read and check a file. Raises `ImportRefused` and `BadInput`."""
        check_choice(documents, "documents", DOCUMENTS)
        check_flag(stopped, "stopped")
        if check_flag(go, "go") and stopped:
            raise BadInput("Expected the agents of a file to come stopped, or to go on at once; got both.")
        if isinstance(file, RecordFile):
            return ImportFile(file.path, Manifest(file.records), lambda: file.records, documents, stopped, go)
        return ImportFile(file, Manifest(read_file(file)), lambda: read_file(file), documents, stopped, go)

    def lines(self) -> Iterator[str]:
        """Describe the contents for a person, in lines."""
        return self.manifest.preview.lines(self.stopped, self.go)

    def why_stopped(self, uuid: str) -> str:
        """Return why a living agent of the file is stopped after the import; empty if it may begin."""
        agent = self.manifest.agents[uuid]
        if self.stopped:
            return "it came stopped"
        waits = agent.status != Status.STOPPED and (agent.turn or self.manifest.prompts[uuid])
        return "it came from a file, with work that waits" if waits and not self.go else ""


class Import(Addressed):
    """Add the agents of a file below an agent; answered with `Imported`.

    Raises:
        AgentNotFound, AmbiguousAgent, AgentDead: there is no such agent that lives.
        HostElsewhere: another host runs it.
        BudgetExceeded: a budget above it does not allow this many agents.
        ImportRefused: the contents of the file conflict with this database, or histories in the file are damaged.
    """

    __slots__ = ("_file", "_hearers", "_host", "_now", "_random_bytes", "_under", "_uuid", "touches")

    touches: tuple[str, ...]
    alone = True
    tree = TreeLock.WHOLE
    concerns_others = True

    def __init__(self, file: ImportFile, under: str | None, host: str, now: int, random_bytes: RandomBytes) -> None:
        """Make the unit.

        Args:
            under: a uuid, name, or unique prefix of a uuid; None for agent 0.
            host: the host that will run the agents, and commits this.
            now: the time of the import, in milliseconds since 1970.
            random_bytes: the source of randomness for new uuids.
        """
        self._file, self._under, self._host, self._now = file, under, host, now
        self._random_bytes = random_bytes
        self.touches = ()

    def look_up(self, tx: Transaction) -> None:
        parent = registry.root(tx) if self._under is None else registry.find(tx, self._under)
        assert parent is not None  # the process that runs the agents has made agent 0
        self._uuid, self._hearers = parent.uuid, hearers(tx, [parent.uuid])
        self.touches = (parent.uuid, *(hearer.uuid for hearer in self._hearers.values()))

    def write(self, tx: Transaction, locked: LockedRows) -> Imported:
        under = registry.get(tx, self._uuid)
        if not under.living:
            raise AgentDead(f"Agent {under.short} is dead: nobody can be imported under it.", under.uuid)
        if under.owner != self._host:
            raise HostElsewhere(f"Another host runs agent {under.short}: import there, or under another agent.")
        graft = Graft(tx, self._file, under, self._now, self._random_bytes)
        _count(tx, locked, self._hearers, under, graft.records)
        try:
            graft.load()
        except StoreConflict as error:
            raise ImportRefused(f"The database takes no rows of the file, and nothing was imported: {error}") from error
        graft.judge()
        graft.restrict()
        graft.add_earlier_rules()
        return graft.imported()


class Graft:
    """Writes the rows of an exported file into this database, with uuids, names and parents changed to fit here."""

    def __init__(
        self, tx: Transaction, file: ImportFile, under: AgentRecord, now: int, random_bytes: RandomBytes
    ) -> None:
        self._tx, self._file, self._under, self._now = tx, file, under, now
        self._manifest = manifest = file.manifest
        known = [*manifest.agents]
        origins = {ORIGIN + uuid: manifest.outside.get(ORIGIN + uuid, "") for uuid in manifest.origins}
        taken = {row[0] for row in tx.run("look_at_all", uuids=[*known, *origins.values()])}
        self.uuids = {uuid: new_agent_uuid(random_bytes) if uuid in taken else uuid for uuid in known}
        """The uuid of each agent here, by the one in the file."""
        self._branch = under.branch or self.uuids[manifest.top]
        for origin, outside in origins.items():  # texts name it, and keep their hashes where it keeps its uuid
            is_free = outside and outside not in taken and outside not in self.uuids
            self.uuids[origin] = outside if is_free else new_agent_uuid(random_bytes)
            taken.add(outside)
        self._dead = {uuid for uuid, agent in manifest.agents.items() if agent.status == Status.TERMINATING}
        names = _free_names(tx, [agent for agent in manifest.living if agent.name is not None])
        self.records = [self._agent(agent, names.get(uuid, agent.name)) for uuid, agent in manifest.agents.items()]
        self._heirs = Counter(agent.parent_uuid for agent in manifest.agents.values())
        self._origins = [self._origin(uuid, whose) for uuid, whose in manifest.origins.items()]
        self._documents = _new_documents(tx, manifest.documents, file.documents)
        self._heads = {self.uuids[uuid]: head for uuid, head in manifest.heads.items()}
        self._pruned_hashes = {self.uuids[uuid]: stored for uuid, stored in manifest.pruned_hashes.items()}
        self._sum = TableSum()
        self._rules = Counter[str]()
        self._points = fork_points(log_starts(manifest.agents.values()))
        self._at_points: dict[tuple[str, int], bytes] = dict.fromkeys(self._points.values(), EMPTY_HASH)
        self._ends: dict[str, bytes] = {}  # the hashes of the latest messages, by the uuids of the file
        self._rehashed = 0

    def load(self) -> None:
        """Write all rows of the file into this database."""
        tx = self._tx
        agents = (*self._origins, *self.records)
        tx.schema.load("agents", _COLUMNS, [[self._row(agent) for agent in agents]])
        living, dead = ([agent.uuid for agent in agents if agent.living is lives] for lives in (True, False))
        if leads := ways(living, {agent.uuid: agent.supervisor_uuid for agent in agents}, set(dead)):
            tx.run("mark_ways", uuids=sorted(leads))
        tables: Mapping[str, tuple[str, Sequence[str], Callable[[Record], Row | None]]] = {
            "rule": ("rules", _RULES, self._rule),
            "message": ("messages", _MESSAGES, self._message),
            "mail": ("mail", _MAIL, self._mail),
            "document": ("documents", _DOCUMENTS, self._document),
            "merge": ("merges", _MERGES, self._merge),
            "spending": ("spendings", _SPENDINGS, self._spending),
            "keyed_call": ("calls", _CALLS, self._keyed_call),
            "blob": ("blobs", _BLOBS, self._blob),
        }
        self._blobs = {name for (name,) in tx.run("all_blobs")}
        for text in {set_of(record.labels) for record in self.records}:
            keep_labels(tx, text)
        for kind, records in groupby(self._records(), key=lambda record: record.kind):
            if kind in tables:
                table, columns, row_of = tables[kind]
                rows = _batches(row for record in records if (row := row_of(record)) is not None)
                tx.schema.load(table, columns, self._sum.counting(rows) if kind == "message" else rows)
        for record in self.records:
            if record.living and record.turn:
                waits = waiting_calls(section(tx, record.uuid, record.turn - 1)).values()
                write_questions(tx, [question_of(record.uuid, call) for call in waits], (), self._now)

    def _records(self) -> Iterator[Record]:
        total = sum(self._manifest.counts.values())
        for done, record in enumerate(self._file.records()):
            if done % _COUNTED == 0:
                self._file.advance(done, total)
            yield record

    def judge(self) -> None:
        """Read the imported messages back, and check them.

        Raises `ImportRefused` if they differ or violate an invariant.
        """
        uuids = {log.uuid for log in (*self._origins, *self.records)}
        back = TableSum()
        wrong = judge(self._tx, uuids, self._under, lambda rows: back.counting(rows))
        if wrong:
            more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            first = wrong[0]
            raise ImportRefused(
                "The file cannot be imported, and nothing of it was: its histories are damaged. "
                f"{first.invariant}: {first.agent}: {first.text}{more}."
            )
        if back != self._sum:
            raise ImportRefused("The database gave back other messages than it was given, and nothing was imported.")

    def restrict(self) -> None:
        """Restrict the imported agents to the rights of the agent above them, like its own children.

        Their histories were checked before. Raises `ImportRefused` below a trial, whose agents may have no effects.
        """
        above = _settings(self._tx, self._under.uuid)
        if (wrong := complaint(above)) is not None:
            raise ImportRefused(f"Nobody can be imported under agent {self._under.short}. {wrong}")
        if "effects" in above:
            text = f"Agent {self._under.short} is a trial, and nothing below it may have an effect"
            raise ImportRefused(f"{text}: nothing was imported. Import under another agent.")
        if not restricted({}, above):
            return
        rows: list[Row] = []
        in_file = {here: uuid for uuid, here in self.uuids.items()}
        for record in self.records:
            if record.pruned_at is None and (changes := restricted(_settings(self._tx, record.uuid), above)):
                self._heads[record.uuid] += 1
                row = (record.uuid, self._heads[record.uuid], Kind.CONFIGURE.value, "", data_text(changes), self._now)
                rows.append((*row, hash_after(self._end(in_file[record.uuid]), row)))
        self._tx.schema.load("messages", _MESSAGES, _batches(iter(rows)))

    def add_earlier_rules(self) -> None:
        """Give agents from a file of an older format the rules that it stored as a setting."""
        if not self._manifest.earlier_rules:
            return
        for record in self.records:
            if record.pruned_at is None:
                for rule in earlier_rules(_settings(self._tx, record.uuid)):
                    try:
                        write_rule(self._tx, record.uuid, rule, self._now)
                    except BadInput as error:
                        raise ImportRefused(f"The file cannot be imported, and nothing of it was: {error}") from error

    def imported(self) -> Imported:
        """Return the imported agents."""
        renewed = {uuid: self.uuids[uuid] for uuid in self._manifest.agents if self.uuids[uuid] != uuid}
        version = registry.tree_version(self._tx)
        return Imported(
            self.uuids[self._manifest.top], tuple(self.records), self._heads, renewed, self._rehashed, version
        )

    def _agent(self, agent: AgentRecord, name: str | None) -> AgentRecord:
        grafted = agent.parent_uuid is None
        made = agent.uuid in self._manifest.makers
        born = agent.born if made else self._manifest.births.get(agent.uuid, agent.born)
        here = replace(
            agent,
            uuid=self.uuids[agent.uuid],
            name=name,
            parent_uuid=self._under.uuid if agent.parent_uuid is None else self.uuids[agent.parent_uuid],
            supervisor_uuid=self._supervisor(agent),
            born=0 if grafted else born,
            exit_sender=None if agent.exit_sender is None else self.uuids[agent.exit_sender],
            mailed=self._manifest.mailed[agent.uuid],
            unread=self._manifest.unread[agent.uuid],
            shard=self._under.shard,
            budget=self._under.budget,
            branch=self._branch,
            imported_at=self._now,
            labels=self._labels(agent),
        )
        if agent.uuid not in self._dead:
            why = self._file.why_stopped(agent.uuid) if agent.living else ""
            return replace(here, status=Status.STOPPED.value, exit_reason=why) if why else here
        reason = agent.exit_reason or "it was terminating when it was exported"
        return replace(
            here, status=Status.DEAD.value, turn=0, deadline=None, ended_at=self._now, exit_reason=reason,
            exit_cause=Cause.TERMINATED.value,
        )  # fmt: skip

    def _labels(self, agent: AgentRecord) -> Mapping[str, str]:
        """Return the labels of an imported agent, combined with those of the agent above it, as for a fork."""
        try:
            return check_labels({**self._under.labels, **agent.labels})
        except BadInput as error:
            raise ImportRefused(f"Agent {agent.uuid} cannot come under agent {self._under.short}. {error}") from error

    def _supervisor(self, agent: AgentRecord) -> str:
        agents, above = self._manifest.agents, agent.supervisor_uuid
        while above is not None and agent.living and above in self._dead:
            if agents[above].on_orphan == OrphanPolicy.CONTINUE:
                break
            above = agents[above].supervisor_uuid
        return self._under.uuid if above is None else self.uuids[above]

    def _origin(self, of: str, whose: str) -> AgentRecord:
        """Return the dead agent that replaces a parent outside of the file.

        This agent has the history that others inherit.
        """
        under, others = self._under, self._heirs[ORIGIN + of] - 1
        heirs = f"{self.uuids[of]} and {others:,} more have" if others else f"{self.uuids[of]} has"
        return AgentRecord(
            self.uuids[ORIGIN + of], None, under.uuid, under.uuid, 0, Status.DEAD.value, 0, "transient",
            f"holds what {heirs} inherited from {whose}", self._now, self._now, 0, None, 1,
            exit_cause=Cause.TERMINATED.value, shard=under.shard, budget=under.budget, imported_at=self._now,
            pruned_at=self._manifest.agents[of].pruned_at, branch=self._branch,
        )  # fmt: skip

    def _row(self, agent: AgentRecord) -> Row:
        values = (getattr(agent, name) for name in _COLUMNS[:-4])
        cut_off = agent.turn if agent.living else 0
        return (*values, self._pruned_hashes.get(agent.uuid), set_of(agent.labels), int(cut_off > 0), cut_off)

    def _message(self, record: Record) -> Row:
        fields = record.fields
        kind, data = fields["kind"], fields["data"]
        if kind in (Kind.FORK, Kind.MERGE, Kind.TOOL_CALL):
            data = self._renamed(data, self._parent_at(fields["agent"], fields["id"]))
        if (known := data_object(data)) is not None:
            kept = without_rights(kind, known, self._manifest.in_open_turn(fields["agent"], fields["id"]))
            data = data if kept == known else kept
        row = (
            self.uuids[fields["agent"]],
            fields["id"],
            kind,
            fields["content"],
            data_text(data),
            fields["created_at"],
        )
        return (*row, self._hash(record, row))

    def _hash(self, record: Record, row: Row) -> bytes:
        """Return the hash of a message in this database. An omitted message keeps the hash of the original."""
        uuid, stored = record.fields["agent"], hash_bytes(record, "hash")
        left_out = stored is not None and row[2] == Kind.OMITTED
        made = stored if stored is not None and left_out else hash_after(self._end(uuid), row)
        self._rehashed += stored is not None and made != stored
        self._ends[uuid] = made
        if (place := (uuid, row[1])) in self._at_points:
            self._at_points[place] = made
        return made

    def _end(self, uuid: str) -> bytes:
        """Return the hash of an agent's history as far as it was imported, given the agent's uuid in the file."""
        if (known := self._ends.get(uuid)) is not None:
            return known
        return self._at_points[self._points[uuid]] if uuid in self._points else EMPTY_HASH

    def _parent_at(self, uuid: str, position: int) -> str | None:
        """Return the uuid, in this database, of the parent that the first message of an agent names."""
        agent = self._manifest.agents.get(uuid)
        if agent is None or agent.parent_uuid is None or position != agent.fork_message_id + 1:
            return None
        return self.uuids[agent.parent_uuid]

    def _renamed(self, value: Any, parent: str | None) -> Any:
        """Return data with each uuid of the file replaced by the uuid in this database."""
        data = data_object(value)
        if data is None:
            return value
        changed: dict[str, Any] = {
            name: self._here(data[name]) for name in ("child", "parent", "of", "by", "from") if name in data
        }
        if parent is not None and "parent" in data:
            changed["parent"] = parent
        if isinstance(data.get("agents"), list):
            changed["agents"] = [self._awaited(agent) for agent in data["agents"]]
        here = {**data, **changed}
        return value if here == data else here

    def _here(self, uuid: Any) -> Any:
        return self.uuids.get(uuid, uuid) if isinstance(uuid, str) else uuid

    def _awaited(self, pair: Any) -> Any:
        match pair:
            case [name, str(uuid)]:
                return [name, self._here(uuid)]
        return pair

    def _rule(self, record: Record) -> Row | None:
        fields = record.fields
        decision, tool, pattern, scope = check_rule(
            *(fields[name] for name in ("decision", "tool", "pattern", "scope"))
        )
        if not counts(NewRule(decision, tool, pattern, scope)):
            return None
        uuid = self.uuids[fields["agent"]]
        self._rules[uuid] += 1
        return (uuid, self._rules[uuid], decision.value, tool, pattern, scope.value, fields["created_at"])

    def _mail(self, record: Record) -> Row:
        fields = record.fields
        sender = None if fields["sender"] is None else self.uuids[fields["sender"]]
        return (
            self.uuids[fields["recipient"]], fields["id"], sender, fields["kind"], fields["body"], fields["created_at"],
            fields["read_at"], data_text(fields["data"]),
        )  # fmt: skip

    def _document(self, record: Record) -> Row | None:
        fields = record.fields
        skipped, shift = self._documents[fields["path"]]
        if fields["version"] <= skipped:
            return None
        author = None if fields["author"] is None else self.uuids[fields["author"]]
        return (fields["path"], fields["version"] + shift, author, fields["body"], fields["created_at"])

    def _merge(self, record: Record) -> Row:
        fields = record.fields
        into, merged = self.uuids[fields["into"]], self.uuids[fields["from"]]
        return (into, merged, fields["from_head"], fields["message"], fields["created_at"])

    def _spending(self, record: Record) -> Row:
        fields = record.fields
        labels = set_of(fields["labels"])
        keep_labels(self._tx, labels)
        uuid = self.uuids[fields["agent"]]
        return (uuid, fields["id"], set_id(labels), fields["created_at"], fields["tokens"], fields["usd"])

    def _keyed_call(self, record: Record) -> Row | None:
        fields = record.fields
        if self.uuids[fields["scope"]] != fields["scope"]:
            return None
        agent, gave = self._here(fields["agent"]), json.dumps(self._named(fields["gave"]))
        return (
            fields["scope"], fields["key"], agent, fields["verb"], fields["asked"], fields["about"], gave,
            fields["created_at"],
        )  # fmt: skip

    def _named(self, value: Any) -> Any:
        """Return the answer of a keyed call with each uuid of the file replaced by the uuid in this database."""
        if isinstance(value, dict):
            return {name: self._named(value) for name, value in value.items()}
        return [self._named(element) for element in value] if isinstance(value, list) else self._here(value)

    def _blob(self, record: Record) -> Row | None:
        name = record.fields["sha256"]
        return None if name in self._blobs else (name, record.fields["media"], blob_bytes(record))


def _free_names(tx: Transaction, named: Sequence[AgentRecord]) -> dict[str, str | None]:
    """Return for each of these agents a name that is free: no living agent here has it, and none of the others."""
    taken_here = {agent.name for agent in named}
    taken = {row.name for row in registry.rows_of(tx, "namesakes", names=[*taken_here]) if row.living}
    free: dict[str, str | None] = {}
    for agent in named:
        name, number = agent.name or "", 1
        while name in taken or (number > 1 and (name in taken_here or tx.run("living_by_name", name=name))):
            number += 1
            name = f"{(agent.name or '')[: NAME_LENGTH - 1 - len(str(number))]}-{number}"
        free[agent.uuid] = name
        taken.add(name)
    return free


def _settings(tx: Transaction, uuid: str) -> Mapping[str, Any]:
    history = StoredHistory(tx, read_lineage(tx, uuid, whole=True))
    return history.view(history.head).settings


class _Versions(NamedTuple):
    """The versions of a document in a file, and how an import writes them."""

    skipped: int
    """The lines after this one."""
    shift: int = 0
    """The offset of their numbers."""


def _new_documents(
    tx: Transaction, bodies_by_path: Mapping[str, Sequence[str | None]], how: str
) -> dict[str, _Versions]:
    """Return for each document of a file the versions to write. Raises `ImportRefused`."""
    new: dict[str, _Versions] = {}
    for path, bodies in bodies_by_path.items():
        here = [row[1] for row in tx.run("bodies_of", path=path)]
        common = min(len(here), len(bodies))
        if list(bodies[:common]) == here[:common]:
            new[path] = _Versions(common)
        elif how == "keep":
            new[path] = _Versions(len(bodies))
        elif how == "append":
            new[path] = _Versions(0, len(here))
        else:
            raise ImportRefused(
                f"The file cannot be imported, and nothing of it was: the document {path!r} is here with other texts. "
                "Choose --documents keep (leave it as it is) or append (add the versions of the file)."
            )
    return new


def _count(
    tx: Transaction, locked: LockedRows, hearers: Hearers, under: AgentRecord, records: Sequence[AgentRecord]
) -> None:
    """Count the imported agents in the budgets above them. Raises `BudgetExceeded`."""
    ledger = BudgetLedger(tx, locked, [under.budget], hearers)
    if living := sum(record.living for record in records):
        ledger.bear(under.budget, living)
    ledger.write()
    budgets = [level.owner for level in ledger.chain(under.budget)]
    for unit, amount in (
        ("tokens", sum(record.spent_tokens for record in records)),
        ("usd", sum(record.spent_usd for record in records)),
    ):
        tx.run("spent_before", budgets=budgets, unit=unit, amount=amount)


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
