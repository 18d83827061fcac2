"""The manifest of an exported file: its agents and contents, known before anything is written. Pure.

The manifest finds the faults that a file shows by itself: duplicates, holes, references to missing records, invalid
words and names. Fsck's checker finds further faults of histories when the rows are in the database.
"""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.identity import check_name, is_agent_uuid
from ikigai_actors.records.agents.labels import check_labels
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.agents.rules import MOST_RULES
from ikigai_actors.records.budgets.budget import MOST
from ikigai_actors.records.documents import check_path
from ikigai_actors.records.fsck.lifecycle import check_life
from ikigai_actors.records.log.append import FIRST_EPOCH
from ikigai_actors.records.messages.blobs import hashes_in
from ikigai_actors.records.messages.forms import Form, birth_form, problem_of, prompt_form
from ikigai_actors.records.messages.messages import Kind, encode_data
from ikigai_actors.records.messages.outputs import expected
from ikigai_actors.records.proof.chain_check import ChainCheck, LogStart
from ikigai_actors.records.transfer.format import HASHED, ORIGIN, RECORDS, Record, data_object, data_text, wrong_line
from ikigai_actors.records.transfer.keys import wrong_with_call
from ikigai_actors.records.transfer.preview import Arrival, ImportPreview
from ikigai_actors.records.transfer.rights import counts, earlier_rules, lifting
from ikigai_actors.store.base import Row
from ikigai_actors.tools.rules.rule import NewRule, check_rule
from supervisors.causes import Cause
from supervisors.signals import Status

MESSAGE_KINDS = {kind.value: kind for kind in Kind}
CAUSES = tuple(cause.value for cause in Cause)
_HASH = re.compile("[0-9a-f]{64}")
MAIL_KINDS = ("mail", "exit", "notice", "prompt")


class Manifest:
    """The contents of a file, collected from its records. Raises `ImportRefused` for faults in the records."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.top = ""
        """The uuid of the agent that was exported, with all below it."""
        self.origins: dict[str, str] = {}
        """For each origin, the text that names the parent outside the file from which its agents inherit."""
        self.outside: dict[str, str] = {}
        """For each origin the uuid of that parent, as those name it that inherit; also for each parent of the file."""
        self.agents: dict[str, AgentRecord] = {}
        """By uuid, parents first. The parent of an heir of an origin is ``origin:…``; of any agent 0, None."""
        self.heads: dict[str, int] = {}
        """The position of the latest message of each agent and origin."""
        self.makers: dict[str, Any] = {}
        """The maker of an agent, where that is not its parent; perhaps none of the file."""
        self.births: dict[str, int] = {}
        """Where the log of an origin has the birth of an agent that inherits from it."""
        self.mailed: Counter[str] = Counter()
        """The number of the latest mail of each agent."""
        self.unread: Counter[str] = Counter()
        """How many mails each agent has not read."""
        self.prompts: Counter[str] = Counter()
        """How many prompts each agent has not begun with."""
        self.documents: dict[str, list[str | None]] = {}
        """The versions of each document."""
        self.counts: Counter[str] = Counter()
        """How many records of each kind there are."""
        self._blobs: set[str] = set()
        self.earlier_rules = False
        """Whether settings of the file are rules here; see `rights.earlier_rules`."""
        self._rules: Counter[str] = Counter()
        self._last_rule: dict[str, int] = {}
        self._allowing = 0
        self._lifted: set[str] = set()  # settings that would give a right
        self._merges: set[tuple[str, int]] = set()
        self._spendings: set[tuple[str, int]] = set()
        self._keyed_calls: set[tuple[str, str]] = set()
        self._mentioned: dict[str, int] = {}  # the line that refers to a blob first
        self._names: set[str] = set()  # of the living
        self._foretold: Mapping[str, Any] = {}
        self._schemas: set[str] = set()  # that prompts ask for, and that are sound
        self._models: set[str] = set()  # that settings name
        self._tools: set[str] = set()
        self._chain: ChainCheck | None = None
        self.pruned_hashes: dict[str, bytes] = {}
        """The hashes of the latest messages of pruned agents."""
        number = 0
        for record in records:
            try:
                getattr(self, f"_{record.kind}")(record)
            except RecursionError as error:
                raise wrong_line(record.line, "expected data that is nested less deep") from error
            self.counts[record.kind] += 1
            number = record.line
        self._conclude(number + 1)

    @property
    def living(self) -> list[AgentRecord]:
        """Return the agents that live after the import. Terminating agents are dead then."""
        return [agent for agent in self.agents.values() if agent.status not in (Status.DEAD, Status.TERMINATING)]

    @property
    def preview(self) -> ImportPreview:
        """Return the preview of the file, for the person who imports it."""
        dead = (Status.DEAD, Status.TERMINATING)
        agents = tuple(
            Arrival(
                uuid,
                agent.name,
                Status.DEAD.value if agent.status in dead else agent.status,
                bool(agent.turn),
                self.prompts[uuid],
            )
            for uuid, agent in self.agents.items()
        )
        models, tools, lifted = (tuple(sorted(names)) for names in (self._models, self._tools, self._lifted))
        return ImportPreview(agents, models, tools, self._allowing, lifted)

    def in_open_turn(self, uuid: str, position: int) -> bool:
        """Return whether a message belongs to a turn that was open at the export."""
        agent = self.agents.get(uuid)
        return agent is not None and 0 < agent.turn < position

    def _header(self, record: Record) -> None:
        self.top = record.fields["top"]
        self._foretold = record.fields["counts"]
        self._is_hashed = record.fields["format"] >= HASHED

    def _origin(self, record: Record) -> None:
        of = record.fields["of"]
        if of in self.origins:
            raise wrong_line(record.line, f"a second origin named after agent {of!r}")
        self.origins[of] = record.fields["outside"]
        self.heads[ORIGIN + of] = 0

    def _agent(self, record: Record) -> None:
        self._check_labels(record.line, record.fields["labels"])
        row = agent_record(record.fields)
        self._check_agent(record.line, row)
        self._check_family(record.line, row)
        if (stored := hash_bytes(record, "pruned_hash")) is not None:
            self.pruned_hashes[row.uuid] = stored
        self.agents[row.uuid] = row
        self.heads[row.uuid] = row.fork_message_id

    def _check_agent(self, line: int, row: AgentRecord) -> None:
        if not is_agent_uuid(row.uuid):
            raise wrong_line(line, f"expected the uuid of an agent, got {row.uuid!r:.60}")
        if row.uuid in self.agents:
            raise wrong_line(line, f"a second agent {row.uuid}")
        if row.name is not None:
            try:
                check_name(row.name)
            except BadInput as error:
                raise wrong_line(line, str(error)) from error
            if row.living and row.name in self._names:
                raise wrong_line(line, f"a second living agent named {row.name!r}")
            self._names |= {row.name} if row.living else set()
        if row.period < 1:
            raise wrong_line(line, f"expected the period of agent {row.uuid} to be above 0")
        if row.exit_cause is not None and row.exit_cause not in CAUSES:
            raise wrong_line(
                line, f"expected an agent to end by one of {', '.join(CAUSES)}; got {row.exit_cause!r:.60}"
            )
        for violation in check_life(row, {row.exit_sender or "": row}):  # who that is, is looked at in the end
            raise wrong_line(line, f"agent {row.uuid}: {violation.text}")

    def _check_family(self, line: int, row: AgentRecord) -> None:
        parent = row.parent_uuid
        if row.uuid in self.origins and parent != ORIGIN + row.uuid:
            raise wrong_line(line, f"expected the parent of agent {row.uuid} to be the origin that is named after it")
        if parent is None and (row.born or row.fork_message_id):
            raise wrong_line(line, f"expected agent {row.uuid} to have a parent")
        if parent is not None and parent not in self.heads:
            raise wrong_line(line, f"expected the parent {parent!r:.60} of agent {row.uuid} before it")

    def _rule(self, record: Record) -> None:
        rule, uuid = record.fields, record.fields["agent"]
        self._known(record, uuid)
        if rule["id"] <= self._last_rule.get(uuid, 0):
            raise wrong_line(record.line, f"expected a rule after {self._last_rule.get(uuid, 0)} of {uuid}")
        self._last_rule[uuid] = rule["id"]
        self._rules[uuid] += 1
        if self._rules[uuid] > MOST_RULES:
            raise wrong_line(record.line, f"expected agent {uuid} to have {MOST_RULES} rules at most")
        try:
            checked = check_rule(rule["decision"], rule["tool"], rule["pattern"], rule["scope"])
        except BadInput as error:
            raise wrong_line(record.line, str(error)) from error
        self._allowing += not counts(NewRule(*checked))

    def _message(self, record: Record) -> None:
        uuid, position = record.fields["agent"], record.fields["id"]
        if uuid not in self.heads:
            raise wrong_line(record.line, f"expected a message of an agent of this file, got one of {uuid!r:.60}")
        if position != self.heads[uuid] + 1:
            raise wrong_line(record.line, f"expected message {self.heads[uuid] + 1} of {uuid} next, got {position}")
        whose = self.agents.get(uuid.removeprefix(ORIGIN))
        if whose is not None and whose.pruned_at is not None:
            raise wrong_line(record.line, f"expected no message of {uuid}, whose log was deleted")
        kind, data = record.fields["kind"], data_object(record.fields["data"]) or {}
        if kind not in MESSAGE_KINDS:
            raise wrong_line(record.line, f"expected a kind of message that this ikigai knows, got {kind!r:.60}")
        self._check_data(record.line, data, MESSAGE_KINDS[kind].form)
        match kind:
            case Kind.FORK:
                self._fork(uuid, position, data)
            case Kind.CONFIGURE:
                self._named_in(data)
            case Kind.ASSISTANT if self.in_open_turn(uuid, position):
                self._called_in(data)
        self.heads[uuid] = position
        if self._is_hashed:
            self._check_hash(record)
        self._refers(record)

    def _check_hash(self, record: Record) -> None:
        """Check that a message has the hash of its history. The messages before it have been read already."""
        if self._chain is None:  # all agents are known
            self._chain = ChainCheck(log_starts(self.agents.values()))
        for problem in self._chain.read(message_row(record)):
            text = f"expected the hash of message {problem.position} of {problem.agent} to be that of its history"
            raise wrong_line(record.line, f"{text}; it is another one, so something was changed")

    def _check_data(self, line: int, data: Mapping[str, Any], form: Form | None) -> None:
        """Check the data that an agent reads when it goes on: costs, calls, attachments, types of values."""
        if (wrong := problem_of(form, data)) is not None:
            raise wrong_line(line, wrong)
        usage = data.get("usage")  # of a kind that has none it is left alone
        if isinstance(usage, dict) and any(isinstance(number, int) and number > MOST for number in usage.values()):
            raise wrong_line(line, f"expected a usage of {MOST:,} tokens at most, got {usage!r:.200}")
        output = data.get("output") if form in (prompt_form, birth_form) else None
        if output is not None and (text := encode_data(output["schema"])) not in self._schemas:
            try:
                expected(output["schema"])
            except BadInput as error:
                raise wrong_line(line, str(error)) from error
            self._schemas.add(text)

    def _fork(self, uuid: str, position: int, data: Mapping[str, Any]) -> None:
        """Record the birth that a message reports, to compare it with the agents of the file later."""
        agent = self.agents.get(uuid)
        if agent is not None and position == agent.fork_message_id + 1:
            if "by" in data:
                self.makers[uuid] = data["by"]
            if is_agent_uuid(str(data.get("parent"))):
                self.outside.setdefault(str(agent.parent_uuid), data["parent"])
        child = self.agents.get(str(data.get("child")))
        if agent is None and child is not None and child.parent_uuid == uuid and position > child.fork_message_id:
            self.births[child.uuid] = position

    def _named_in(self, settings: Mapping[str, Any]) -> None:
        """Record the models and tools that settings name. Whether the settings are valid is checked later."""
        self.earlier_rules |= bool(earlier_rules(settings))
        self._lifted |= set(lifting(settings))
        for models in (settings.get("model"), settings.get("compact_model")):
            self._models |= _names(models.split(",") if isinstance(models, str) else ())
        effects = settings.get("effects")
        for tools in (settings.get("tools"), effects.get("run") if isinstance(effects, dict) else ()):
            self._tools |= _names(tools)

    def _called_in(self, reply: Mapping[str, Any]) -> None:
        """Record the tools that a reply of an open turn calls."""
        for calls in (reply.get("blocks"), reply.get("tool_calls")):
            for call in calls if isinstance(calls, list) else ():
                if isinstance(call, dict) and call.get("type", "tool_use") == "tool_use":
                    self._tools |= _names([call.get("name")])

    def _mail(self, record: Record) -> None:
        mail, uuid = record.fields, record.fields["recipient"]
        self._known(record, uuid, mail["sender"])
        if mail["id"] <= self.mailed[uuid]:
            raise wrong_line(record.line, f"expected a mail after {self.mailed[uuid]} of {uuid}, got {mail['id']}")
        if mail["kind"] not in MAIL_KINDS:
            raise wrong_line(
                record.line, f"expected mail of the kind {', '.join(MAIL_KINDS)}; got {mail['kind']!r:.60}"
            )
        self._check_data(record.line, data_object(mail["data"]) or {}, prompt_form)
        self.mailed[uuid] = mail["id"]
        if mail["read_at"] is None:
            (self.prompts if mail["kind"] == "prompt" else self.unread)[uuid] += 1
        self._refers(record)

    def _document(self, record: Record) -> None:
        document = record.fields
        self._known(record, document["author"])
        try:
            versions = self.documents.setdefault(check_path(document["path"]), [])
        except BadInput as error:
            raise wrong_line(record.line, str(error)) from error
        if document["version"] != len(versions) + 1:
            raise wrong_line(record.line, f"expected version {len(versions) + 1} of {document['path']!r} next")
        versions.append(document["body"])

    def _merge(self, record: Record) -> None:
        merge = record.fields
        self._known(record, merge["into"], merge["from"])
        key = merge["into"], merge["message"]
        if key in self._merges:
            raise wrong_line(record.line, f"a second merge at message {merge['message']} of {merge['into']}")
        self._merges.add(key)

    def _spending(self, record: Record) -> None:
        spent = record.fields
        self._known(record, spent["agent"])
        self._check_labels(record.line, spent["labels"])
        if max(spent["tokens"], spent["usd"]) > MOST:
            raise wrong_line(record.line, f"expected a request to cost {MOST:,} tokens and micro-dollars at most")
        key = spent["agent"], spent["id"]
        if key in self._spendings:
            raise wrong_line(record.line, f"a second cost of message {spent['id']} of {spent['agent']}")
        self._spendings.add(key)

    def _keyed_call(self, record: Record) -> None:
        call = record.fields
        self._known(record, call["scope"], call["agent"])
        if not _HASH.fullmatch(call["asked"]):
            raise wrong_line(record.line, f"expected asked to be 64 hexadecimal digits, got {call['asked']!r:.80}")
        if (wrong := wrong_with_call(call, self.agents)) is not None:
            raise wrong_line(record.line, wrong)
        key = call["scope"], call["key"]
        if key in self._keyed_calls:
            raise wrong_line(record.line, f"a second call of {call['scope']} under key {call['key']!r:.60}")
        self._keyed_calls.add(key)

    def _check_labels(self, line: int, labels: Mapping[str, Any]) -> None:
        try:
            check_labels(labels)
        except BadInput as error:
            raise wrong_line(line, str(error)) from error

    def _blob(self, record: Record) -> None:
        name = record.fields["sha256"]
        if name in self._blobs:
            raise wrong_line(record.line, f"a second blob {name:.64}")
        if sha256(blob_bytes(record)).hexdigest() != name:
            raise wrong_line(record.line, f"expected the bytes of blob {name:.64} to have this hash")
        self._blobs.add(name)

    def _known(self, record: Record, *uuids: str | None) -> None:
        for uuid in uuids:
            if uuid is not None and uuid not in self.agents:
                raise wrong_line(record.line, f"expected an agent of this file, got {uuid!r:.60}")

    def _refers(self, record: Record) -> None:
        if isinstance(record.fields["data"], dict):
            for name in hashes_in(record.fields["data"]):
                self._mentioned.setdefault(name, record.line)

    def _conclude(self, line: int) -> None:
        if self.top not in self.agents:
            raise wrong_line(1, f"expected the agent {self.top!r:.60} to be in the file")
        for uuid in self.origins:
            if uuid not in self.agents:
                raise wrong_line(line, f"expected the agent {uuid!r:.60}, after which an origin is named")
        for row in self.agents.values():
            for who, what in ((row.supervisor_uuid, "supervisor"), (row.exit_sender, "end")):
                if who is not None and who not in self.agents:
                    raise wrong_line(line, f"the {what} of agent {row.uuid} is {who!r:.60}, who is not in the file")
            if row.parent_uuid is not None and row.parent_uuid.startswith(ORIGIN):
                self._check_inheritance(line, row, row.parent_uuid)
        for name, where in self._mentioned.items():
            if name not in self._blobs:
                raise wrong_line(where, f"it refers to blob {name:.64}, which is not in the file")
        spent = {
            unit: sum(getattr(agent, unit) for agent in self.agents.values()) for unit in ("spent_tokens", "spent_usd")
        }
        for unit, amount in spent.items():
            if amount > MOST:
                raise wrong_line(line, f"expected {unit} of all agents to be {MOST:,} at most, got {amount:,}")
        counted = {kind: self.counts[kind] for kind in RECORDS if kind not in ("header", "end")}
        if {"spending": 0, "rule": 0, "keyed_call": 0, **self._foretold} != counted:
            raise wrong_line(line, f"expected {dict(self._foretold)} records, as the header says; got {counted}")

    def _check_inheritance(self, line: int, row: AgentRecord, origin: str) -> None:
        """Check that an origin has the whole history that an agent inherits from it."""
        if (row.pruned_at is None) != (self.agents[origin.removeprefix(ORIGIN)].pruned_at is None):
            raise wrong_line(line, f"expected all agents of {origin} to be pruned, or none; {row.uuid} differs")
        if row.pruned_at is not None:
            return
        if (head := self.heads[origin]) < row.fork_message_id:
            where = f"the fork point of agent {row.uuid}, {row.fork_message_id}"
            raise wrong_line(line, f"expected {origin} to go on up to {where}; it ends at {head}")
        if row.uuid not in self.births and row.uuid not in self.makers:
            raise wrong_line(line, f"expected {origin} to record the birth of agent {row.uuid}; it does not")


def log_starts(agents: Collection[AgentRecord]) -> dict[str, LogStart]:
    """Return the starts of the logs of a file, including those of its origins, as far as they have hashes."""
    starts = {
        agent.uuid: LogStart(agent.parent_uuid, agent.fork_message_id, outside=agent.born == 0)
        for agent in agents
        if agent.pruned_at is None
    }
    for start in list(starts.values()):
        if start.parent is not None and start.parent.startswith(ORIGIN):
            known = starts.get(start.parent, LogStart(None, 0, 0)).hashed or 0
            starts[start.parent] = LogStart(None, 0, max(known, start.fork), outside=True)
    return starts


def message_row(record: Record) -> Row:
    """Return a message record as a row of ``messages`` with its hash; None for the hash if the file has none."""
    fields = record.fields
    written = (
        fields["agent"],
        fields["id"],
        fields["kind"],
        fields["content"],
        data_text(fields["data"]),
        fields["created_at"],
    )
    return (*written, hash_bytes(record, "hash"))


def hash_bytes(record: Record, name: str) -> bytes | None:
    """Return the hash in a field of a record. Raises `ImportRefused` if it is invalid."""
    text = record.fields[name]
    if text is None:
        return None
    if not _HASH.fullmatch(text):
        raise wrong_line(record.line, f"expected {name} to be 64 hexadecimal digits, got {text!r:.80}")
    return bytes.fromhex(text)


def agent_record(fields: Mapping[str, Any]) -> AgentRecord:
    """Return an agent record of a file as a row of the registry."""
    row = {name: value for name, value in fields.items() if name not in ("parent", "supervisor", "pruned_hash")}
    above = {"parent_uuid": fields["parent"], "supervisor_uuid": fields["supervisor"]}
    return AgentRecord(**row, **above, active_at=0, owner=None, epoch=FIRST_EPOCH)


def blob_bytes(record: Record) -> bytes:
    """Return the bytes of a blob record."""
    try:
        return base64.b64decode(record.fields["bytes"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise wrong_line(record.line, f"expected the bytes of a blob in base64 ({error})") from error


def _names(value: object) -> set[str]:
    if not isinstance(value, list | tuple | dict):
        return set()
    return {name.strip() for name in value if isinstance(name, str) and name.strip()}
