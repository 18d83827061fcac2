"""Tallies: counters of the turns, steps and tokens of agents of other processes, from the rows of their logs.

Only a host knows for how long its agents wait, and what is in their inboxes. Turns, steps and tokens are in the log:
a prompt opens a turn, each reply is a step, and says what it cost.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ikigai_actors.agent.statistics import AgentStatistics
from ikigai_actors.providers.base import NO_TOKENS, Usage
from ikigai_actors.records.agents import registry
from ikigai_actors.records.log.heads import UP_TO_THE_END, readable_section
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import reply_of
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.remote.follower import News


@dataclass(slots=True)
class RowTally:
    """The counters of one agent, counted from the messages in its log."""

    turn: int = 0
    """The message that opened the turn in progress; 0 for none."""
    since: int = 0
    """When that began, or the latest turn ended, as far as known; in milliseconds since 1970."""
    turns: int = 0
    """How many turns have begun."""
    steps: int = 0
    tokens: Usage = NO_TOKENS
    models: dict[str, Usage] = field(default_factory=dict)
    place: int = 0
    """The latest message that was counted."""

    @property
    def ended(self) -> int:
        """The number of turns that have ended."""
        return max(0, self.turns - bool(self.turn))

    def count(self, messages: Iterable[Message]) -> None:
        """Count messages; a message that was counted before is skipped."""
        for message in messages:
            if message.id <= self.place:
                continue
            self.place = message.id
            if message.kind == Kind.USER or (message.kind == Kind.FORK and "go" in message.data):
                self.turns += 1
            elif message.kind == Kind.ASSISTANT:
                reply = reply_of(message)
                spent = reply.usage or NO_TOKENS
                self.steps += 1
                self.tokens += spent
                self.models[reply.model] = self.models.get(reply.model, NO_TOKENS) + spent

    def statistics(self, state: str) -> AgentStatistics:
        """Return the counters as statistics; 0 for values that no row has."""
        models = dict(self.models)
        return AgentStatistics(state, self.since, 0, self.ended, self.steps, self.tokens, 0, 0, 0, models)


class RowTallies:
    """The counters of agents that other processes run, by uuid."""

    def __init__(self) -> None:
        self._tallies: dict[str, RowTally] = {}

    def note(self, news: News, now: int) -> None:
        """Count the messages of news; ``now`` in milliseconds since 1970."""
        for uuid, turn in news.turns.items():
            tally = self.of(uuid)
            if turn != tally.turn:
                tally.turn, tally.since = turn, now
        for message in news.messages:
            self.of(message.agent_uuid).count((message,))

    def of(self, uuid: str) -> RowTally:
        """Return the counters of an agent so far."""
        return self._tallies.setdefault(uuid, RowTally())

    def every(self) -> list[RowTally]:
        """Return the counters of all agents."""
        return list(self._tallies.values())

    def read(self, tx: Transaction, uuid: str) -> RowTally:
        """Count an agent's whole life by its own messages, as far as they can be read. Raises `AgentNotFound`."""
        record, messages = registry.get(tx, uuid), readable_section(tx, uuid, 0, UP_TO_THE_END).messages
        tally = RowTally(record.turn, messages[-1].created_at if messages else record.created_at)
        tally.count(messages)
        self._tallies[uuid] = tally
        return tally
