"""What a database holds at one moment, and what is open in it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors import AgentRecord, Message
from ikigai_actors.agent.turn.calls import Call, Progress, calls_of, recover
from ikigai_actors.records.agents import registry
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.reply_data import INTERRUPTED
from ikigai_actors.store import Store, Transaction
from tests.kit.databases import sql


class Snapshot(NamedTuple):
    """Everybody, and what each wrote itself."""

    records: Mapping[str, AgentRecord]
    logs: Mapping[str, Mapping[int, Message]]
    """By agent and position, in order."""
    obituaries: tuple[tuple[str, str], ...] = ()
    """Every mail of kind ``exit``: who got it, and who had died."""
    words: Mapping[tuple[str, int], str] = {}
    """The texts of all words, by agent and mail."""
    unread: int = 0
    """How many of them are unread."""
    reminders: Mapping[tuple[str, str], int] = {}
    """How many timers and mails of timers there are, by agent and text."""
    members: frozenset[tuple[str, str]] = frozenset()
    """Who is in which group: group and agent."""

    @property
    def messages(self) -> Iterator[Message]:
        """All of them, log by log."""
        for log in self.logs.values():
            yield from log.values()


NOTHING = Snapshot({}, {})
"""A database that is not there yet."""


def take(store: Store) -> Snapshot:
    """Read everything at one moment."""
    return store.read(take_in)


def logs_of(tx: Transaction, agents: Iterable[str]) -> dict[str, dict[int, Message]]:
    """What each agent wrote itself, by position."""
    logs: dict[str, dict[int, Message]] = {uuid: {} for uuid in agents}
    for row in sql(tx, "SELECT agent_uuid, id, kind, content, data, created_at FROM messages ORDER BY agent_uuid, id"):
        message = Message.from_row(row)
        logs[message.agent_uuid][message.id] = message
    return logs


def take_in(tx: Transaction) -> Snapshot:
    """Read everything within a transaction."""
    records = {record.uuid: record for record in registry.every(tx)}
    logs = logs_of(tx, records)
    mails = sql(tx, "SELECT recipient, sender FROM mail WHERE kind = 'exit'")
    obituaries = tuple((str(recipient), str(sender)) for recipient, sender in mails)
    rows = sql(tx, "SELECT recipient, id, body, read_at FROM mail WHERE kind = 'prompt' AND data LIKE '%\"steer\":%'")
    words = {(str(agent), int(mail)): str(body) for agent, mail, body, _ in rows}
    unread = sum(read_at is None for *_, read_at in rows)
    timers = sql(tx, "SELECT agent_uuid, body FROM timers")
    fired = sql(tx, "SELECT recipient, body FROM mail WHERE kind = 'notice' OR kind = 'prompt'")
    members = frozenset((str(name), str(agent)) for name, agent in sql(tx, "SELECT name, agent_uuid FROM groups"))
    reminders = Counter((str(agent), str(body)) for agent, body in (*timers, *fired))
    return Snapshot(records, logs, obituaries, words, unread, reminders, members)


@dataclass(slots=True)
class CallStory:
    """What a log tells of one call."""

    agent: str
    call: Call
    started: int
    """How often a write-ahead record was written."""
    results: list[Message]
    answered: bool
    """The model was asked again: every call must have its result by then."""


def stories(agent: str, log: Mapping[int, Message]) -> Iterator[CallStory]:
    """Every call that an agent's own replies ask for."""
    current: dict[str, CallStory] = {}
    for message in log.values():
        match message.kind:
            case Kind.ASSISTANT | Kind.ERROR:
                for story in current.values():
                    story.answered = True
                    yield story
                calls = calls_of(message) if message.kind == Kind.ASSISTANT else ()
                current = {call.id: CallStory(agent, call, 0, [], False) for call in calls}
            case Kind.USER | Kind.INTERRUPTED:
                yield from current.values()
                current = {}
            case Kind.TOOL_CALL if message.data["tool_use_id"] in current:
                current[message.data["tool_use_id"]].started += 1
            case Kind.TOOL_RESULT if message.data["tool_use_id"] in current:  # that of a child's own fork is not
                current[message.data["tool_use_id"]].results.append(message)
    yield from current.values()


def closing(log: Mapping[int, Message], position: int) -> tuple[str, str] | None:
    """How the turn ended that a message opened: kind and text; None when it has not. A word lets it go on."""
    ended: tuple[str, str] | None = None
    for message in log.values():
        if message.id <= position:
            continue
        if message.kind == Kind.STEER:
            ended = None
        elif ended is None and message.kind == Kind.ASSISTANT and message.data.get("stop_reason") == INTERRUPTED:
            ended = Kind.INTERRUPTED, ""
        elif ended is None and (
            message.kind in (Kind.ERROR, Kind.INTERRUPTED) or (message.kind == Kind.ASSISTANT and not calls_of(message))
        ):
            ended = message.kind, message.content
        elif message.kind == Kind.USER:
            break
    return ended


def open_turns(snapshot: Snapshot) -> Iterator[str]:
    """What each turn that is open was doing: ``tool running``, ``between calls`` or ``model asked``."""
    for record in snapshot.records.values():
        if record.turn:
            calls = open_calls(snapshot, record)
            if any(call.progress is Progress.RUNNING for call in calls):
                yield "tool running"
            elif calls:
                yield "between calls"
            else:
                yield "model asked"


def open_calls(snapshot: Snapshot, record: AgentRecord) -> list[Call]:
    """The calls of an agent's open turn that have no result."""
    log = snapshot.logs[record.uuid]
    calls = recover(message for message in log.values() if message.id >= record.turn) if record.turn else ()
    return [call for call in calls if call.progress is not Progress.DONE]
