"""The parts of logs from which turns are made, for example as spans. Each method reads one moment.

An agent's row and the end of its log are read together, and the log up to there in parts: logs only grow. So a database
may be read while its host works, and a turn is read whole or not at all.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Self

from ikigai_actors.reach.readable import Readable
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.lists import by_age
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.heads import Head, heads_of, latest_times, section
from ikigai_actors.records.log.moments import MailTime, mails_read, positions_at, prompt_before
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.store.base import Store, Transaction


class TurnSource(NamedTuple):
    """The part of an agent's log from which its turns are read."""

    record: AgentRecord
    head: Head
    start: int
    """The position before the first message of the part."""


class TurnSources:
    """Reads the parts of logs from which turns are made, in one database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: dict[str, AgentRecord | None] = {}

    @classmethod
    def of(cls, source: Readable) -> Self:
        """Return the reader for the database of a system or a client."""
        return cls(source._store)

    def agents(self, among: Collection[str] | None) -> list[str]:
        """Return the uuids of these agents, or of all, the oldest first."""
        if among is None:
            return self._store.read(by_age)
        records = self._store.read(lambda tx: registry.some(tx, among))
        return [record.uuid for record in registry.oldest_first(records)]

    def sources(self, uuids: Sequence[str], since: int) -> list[TurnSource]:
        """Return the parts of these agents' logs that may contain turns which ended since a time; 0 for all."""
        return self._store.read(partial(_sources, uuids=uuids, since=since))

    def messages(self, agent: str, start: int, end: int) -> list[Message]:
        """Return an agent's own messages after a position, up to another one."""
        return self._store.read(lambda tx: section(tx, agent, start, end))

    def mails(self, agent: str, at: int) -> list[MailTime]:
        """Return the mails that an agent read with the message at a position."""
        return self._store.read(lambda tx: mails_read(tx, agent, at, at))

    def position_at(self, agent: str, at: int) -> Mapping[str, int]:
        """Return the position of an agent's log at a time, by uuid; empty for an unknown agent."""
        return self._store.read(lambda tx: positions_at(tx, (agent,), at))

    def before(self, agent: str, position: int) -> tuple[AgentRecord, int, list[Message]] | None:
        """Return an agent, the position before the turn that contains ``position``, and the messages between both.

        None if there is no such agent.
        """

        def read(tx: Transaction) -> tuple[AgentRecord, int, list[Message]] | None:
            if (record := self._record(tx, agent)) is None:
                return None
            start = _before_turn(tx, record, position)
            return record, start, section(tx, agent, start, position)

        return self._store.read(read)

    def birth(self, agent: str) -> tuple[str, int]:
        """Return the agent from which this agent was forked, and the position of the fork in that agent's log.

        The result is ``("", 0)`` for agent 0, and if the parent is not in this database.
        """

        def read(tx: Transaction) -> tuple[str, int]:
            record = self._record(tx, agent)
            if record is None or not record.born:
                return "", 0
            start = record.fork_message_id
            first = [message.data for message in section(tx, agent, start, start + 1)]
            return next((str(data.get("by") or data.get("parent", "")) for data in first), ""), record.born

        return self._store.read(read)

    def fork_call(self, maker: str, opens: int, born: int) -> tuple[int, int] | None:
        """Return the call that forked an agent in a turn: the position of its reply, and its index; None for none."""

        def read(tx: Transaction) -> tuple[int, int] | None:
            messages = section(tx, maker, born, born + 1)
            if not messages or messages[0].kind != Kind.TOOL_RESULT or messages[0].data.get("name") != "fork":
                return None
            replies = (
                message for message in reversed(section(tx, maker, opens, born)) if message.kind == Kind.ASSISTANT
            )
            for reply in replies:
                for place, call in enumerate(calls_in(reply)):
                    if call.id == messages[0].data.get("tool_use_id"):
                        return reply.id, place
            return None

        return self._store.read(read)

    def _record(self, tx: Transaction, agent: str) -> AgentRecord | None:
        if agent not in self._records:
            self._records[agent] = next(iter(registry.some(tx, (agent,))), None)
        return self._records[agent]


def _sources(tx: Transaction, uuids: Sequence[str], since: int) -> list[TurnSource]:
    heads = {head.uuid: head for head in heads_of(tx, uuids)}
    rows = {record.uuid: record for record in registry.some(tx, uuids)}
    before = positions_at(tx, uuids, since - 1) if since else {}
    latest = latest_times(tx, uuids) if since else {}
    sources = []
    for uuid in uuids:
        row, head = rows[uuid], heads[uuid]
        ended = row.ended_at is not None and row.ended_at >= since
        if row.pruned_at is None and head.last and (ended or latest.get(uuid, since) >= since):
            sources.append(TurnSource(row, head, _before_turn(tx, row, before[uuid]) if since else row.fork_message_id))
    return sources


def _before_turn(tx: Transaction, record: AgentRecord, position: int) -> int:
    """Return the position before the turn that contains a position of an agent's log, or the fork point.

    Every prompt begins a turn, except the prompts that a trial has copied; its first turn begins with its birth.
    """
    opens = prompt_before(tx, record.uuid, position)
    for prompt in (opens, prompt_before(tx, record.uuid, opens - 1)):
        if not prompt or any("from" in message.data for message in section(tx, record.uuid, prompt - 1, prompt)):
            return record.fork_message_id
    return opens - 1
