"""The checks of fsck for mail and documents; see `ikigai_actors.records.fsck.check`."""

from collections.abc import Iterator, Mapping

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction


def check_mailboxes(tx: Transaction, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    """Return the faults of mailboxes, and of their counts in the registry."""
    boxes = {row[0]: row[1:] for row in tx.run("mailboxes")}
    for uuid in sorted(boxes.keys() - records.keys()):
        yield Violation(Invariant.MAIL, uuid, "expected it to exist, since it has mail; there is no such agent")
    for uuid, record in records.items():
        lowest, highest, unread = boxes.get(uuid, (1, 0, 0))
        if lowest < 1 or highest > record.mailed:
            text = f"expected its mails to be numbered from 1 to {record.mailed} at most, got {lowest} to {highest}"
            yield Violation(Invariant.MAIL_ID, uuid, text)
        if record.unread != unread and record.pruned_at is None:
            text = f"expected it to count {unread} unread mails, as many as it has; it counts {record.unread}"
            yield Violation(Invariant.UNREAD, uuid, text)
    for recipient, number, sender in tx.run("mail_of_strangers"):
        text = (
            f"expected mail {number} to be of an agent or of a person; it is of {sender!r}, and there is no such agent"
        )
        yield Violation(Invariant.MAIL, recipient, text)


def check_documents(tx: Transaction) -> Iterator[Violation]:
    """Return the documents with gaps in their versions, and the versions written by agents that do not exist."""
    for path, count, lowest, highest in tx.run("document_versions"):
        if (lowest, highest) != (1, count):
            text = (
                f"expected document {path!r} to have the versions 1 to {count}, got {count} from {lowest} to {highest}"
            )
            yield Violation(Invariant.VERSION, None, text)
    for path, version, author in tx.run("documents_of_strangers"):
        text = f"expected version {version} of document {path!r} to be of an agent or of a person; it is of "
        yield Violation(Invariant.DOCUMENT, None, f"{text}{author!r}, and there is no such agent")
