"""What a database holds at one moment, as far as the judge looks at it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ikigai_actors import AgentRecord, Message
from ikigai_actors.records.agents import registry
from ikigai_actors.records.documents import Document
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.fsck.check import Report
from ikigai_actors.records.mail.mail import Mail
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.store import Store, Transaction
from tests.kit.databases import sql
from tests.torture.snapshot import logs_of


class Holdings(NamedTuple):
    """Everybody, what each wrote, all mail, all documents."""

    records: Mapping[str, AgentRecord]
    logs: Mapping[str, Mapping[int, Message]]
    """By agent and position, in order."""
    mails: Mapping[tuple[str, int], Mail]
    """By recipient and number."""
    documents: Mapping[str, list[Document]]
    """All versions of each path, in order."""

    def results(self, name: str) -> Iterator[tuple[str, Message]]:
        """The results of all calls of a tool, agent by agent and in order, each with the id of the call."""
        for log in self.logs.values():
            for message in log.values():
                if message.kind == Kind.TOOL_RESULT and message.data["name"] == name:
                    yield message.data["tool_use_id"], message


NOTHING = Holdings({}, {}, {}, {})
"""A database that is not there yet."""


def take(store: Store) -> Holdings:
    """Read everything at one moment."""
    return store.read(_take)


def look_over(store: Store) -> tuple[Report, Holdings]:
    """What fsck says, and what there is."""
    return fsck.inspect(store), take(store)


def last_position(tx: Transaction, agent: str) -> int:
    """Where an agent's own log ends; 0 when it has written nothing."""
    [(last,)] = sql(tx, f"SELECT COALESCE(MAX(id), 0) FROM messages WHERE agent_uuid = '{agent}'")
    assert isinstance(last, int)
    return last


def _take(tx: Transaction) -> Holdings:
    records = {record.uuid: record for record in registry.every(tx)}
    logs = logs_of(tx, records)
    rows = sql(tx, "SELECT recipient, id, sender, kind, body, created_at, read_at FROM mail ORDER BY recipient, id")
    mails = {(mail.recipient, mail.id): mail for mail in (Mail(*row) for row in rows)}
    documents = defaultdict(list)
    for row in sql(tx, "SELECT path, version, author, created_at, body FROM documents ORDER BY version"):
        documents[str(row[0])].append(Document(*row))
    return Holdings(records, logs, mails, dict(documents))
