"""Finds where an agent's history is stored, in its own log and its ancestors', without a log in memory."""

from datetime import UTC, datetime

from ikigai_actors.errors import AgentNotFound, HistoryError, HistoryPruned
from ikigai_actors.records.log.history import Ancestor, ReplayRange, walk
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.base import Row, Transaction

REMEDY = "Run `ikigai fsck`, which names all that is wrong, and restore a copy."
"""Advice in error messages about wrong rows."""

AGENT_0_REMEDY = "Agent 0 cannot be given up: run `ikigai fsck`, which names all that is wrong, and restore a copy."
"""Advice in error messages about wrong rows of agent 0."""


def read_whole(tx: Transaction, uuid: str) -> list[Message]:
    """Return every message of an agent's history that was ever written, inherited ones first, including cleared ones.

    Raises:
        AgentNotFound: there is no such agent.
        HistoryError: rows of the history are wrong.
    """
    parts: list[list[Message]] = []
    bound: int | None = None
    for agent in read_lineage(tx, uuid, whole=True):
        fork = agent.fork_message_id
        if bound is not None and bound <= fork:  # forked before this one was
            continue
        rows = tx.run("log_section", uuid=agent.uuid, start=fork, end=LAST if bound is None else bound)
        parts.append([Message.from_row(row) for row in rows])
        end = len(rows) + fork if bound is None else bound
        if [message.id for message in parts[-1]] != list(range(fork + 1, end + 1)):
            text = f"The log of agent {agent.uuid} has a hole, or ends before {end}. {REMEDY}"
            raise HistoryError(text, agent.uuid)
        bound = fork
    return [message for part in reversed(parts) for message in part]


def read_section(tx: Transaction, uuid: str, start: int, end: int) -> list[Message]:
    """Return an agent's own messages after a position and up to another. Raises `HistoryError`."""
    return [Message.from_row(row) for row in tx.run("log_section", uuid=uuid, start=start, end=end)]


LAST = 2**63 - 1
"""A number larger than every position."""


def check_unpruned(uuid: str, at: int | None) -> None:
    """Raise `HistoryPruned` if the messages of an agent were pruned.

    ``at`` is the time of that; None if they were not.
    """
    if at is not None:
        text = f"The history of agent {uuid} was deleted on {datetime.fromtimestamp(at / 1000, UTC).date()}"
        raise HistoryPruned(f"{text} by ikigai prune; only its row in the registry is left.", uuid, at)


def read_lineage(tx: Transaction, uuid: str, whole: bool = False) -> list[Ancestor]:
    """Return the agent and its ancestors, nearest first; unless ``whole``, only back to the latest clear.

    Raises:
        AgentNotFound: there is no such agent.
        HistoryPruned: the agent's messages were deleted. A prune also deletes the messages of all its descendants. It
            keeps the messages of an ancestor as long as one of the descendants has a history.
        HistoryError: an ancestor is missing, or the lineage runs in a circle.
    """
    rows = {row[0]: row for row in tx.run("lineage", uuid=uuid, whole=int(whole))}
    if uuid not in rows:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    check_unpruned(uuid, rows[uuid][5])
    lineage: list[Ancestor] = []
    row: Row | None = rows.pop(uuid)
    while row is not None:
        last, cleared, bound = Ancestor(*row[:3]), row[3], row[4]
        lineage.append(last)
        row = rows.pop(last.parent_uuid, None)
    if last.parent_uuid is not None and bound > 0 and (whole or cleared is None):  # there should be more
        raise HistoryError(f"The ancestors of agent {uuid} cannot be followed beyond {last.uuid}. {REMEDY}", last.uuid)
    return lineage


def read_ranges(tx: Transaction, uuid: str) -> tuple[ReplayRange, ...]:
    """Return where an agent's history is stored, oldest range first (see `walk`). Needs one query at any depth.

    Raises:
        AgentNotFound: there is no such agent.
        HistoryError: an ancestor is missing, or the lineage runs in a circle.
    """
    lineage = {ancestor.uuid: ancestor for ancestor in read_lineage(tx, uuid)}
    cleared = {row[0]: row[3] or 0 for row in tx.run("lineage", uuid=uuid, whole=0)}
    return walk(uuid, lineage.__getitem__, lambda agent, bound: cleared[agent])
