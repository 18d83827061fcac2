"""Violations of the invariants of a database, by name and in words."""

from dataclasses import dataclass
from enum import StrEnum


class Invariant(StrEnum):
    """The names of the invariants; `ikigai_actors.records.fsck.check` explains each."""

    TYPE = "type"
    AGENT_0 = "agent-0"
    PARENT = "parent"
    LINEAGE = "lineage"
    SUPERVISOR = "supervisor"
    SUPERVISORS = "supervisors"
    LIVING_SUPERVISOR = "living-supervisor"
    WAY = "way"
    STATUS = "status"
    DEATH = "death"
    AWAKE = "awake"
    PRUNED = "pruned"
    DEADLINE = "deadline"
    SIGNAL = "signal"
    RESTART = "restart"
    REMOTE_COMMAND = "remote-command"
    KEYED_CALL = "keyed-call"
    ARRIVAL = "arrival"
    DELIVERY = "delivery"
    BATCH = "batch"
    GUEST = "guest"
    NAME = "name"
    EPOCH = "epoch"
    HOST = "host"
    OWNER = "owner"
    ONE_ROW = "one-row"
    LOG = "log"
    POSITION = "position"
    DATA = "data"
    TIME = "time"
    HASH = "hash"
    FORK_POINT = "fork-point"
    FORK_MESSAGE = "fork-message"
    FORK_AT = "fork-at"
    TURN = "turn"
    REWIND = "rewind"
    SUMMARY = "summary"
    UNCOMPACT = "uncompact"
    MERGE = "merge"
    CALL = "call"
    ACT = "act"
    MAIL = "mail"
    MAIL_ID = "mail-id"
    UNREAD = "unread"
    WORD = "word"
    BLOB = "blob"
    DEFINITION = "definition"
    BUILD = "build"
    DOCUMENT = "document"
    VERSION = "version"
    BUDGET = "budget"
    HOLD = "hold"
    SPENDING = "spending"
    COST = "cost"
    LABELS = "labels"
    STRICT = "strict"
    PAUSE = "pause"
    TIMER = "timer"
    RULE = "rule"
    QUESTION = "question"
    TREE = "tree"
    GROUP = "group"
    MONITOR = "monitor"
    ASKED = "asked"
    PARKED = "parked"
    PIECES = "pieces"
    EXPERIMENT = "experiment"


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of an invariant."""

    invariant: Invariant
    agent: str | None
    """The uuid of the agent with the faulty rows; None when they belong to no agent."""
    text: str
    """The expected and the actual value."""


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on a database, which is no violation."""

    agent: str
    """The uuid of the agent that the remark is about."""
    text: str
    """The text of the remark."""
