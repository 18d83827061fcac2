"""The agents of a snapshot as rows: activity, its duration, and cost. Pure.

The tree and the screen of agents show the same rows. The rows are made on the thread of the snapshots.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ikigai_actors.reach.snapshots import Snapshot
from ikigai_actors.reach.states import is_in_turn
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.shell.app.theme import Palette
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.words import Activity, activity

NEEDS_A_PERSON = ("asks", "budget", "interrupted")
"""The kinds of activity that wait for a person, most urgent first."""

WORKS = ("answering", "tool", "thinking", "waiting")

URGENCY = {kind: place for place, kind in enumerate((*NEEDS_A_PERSON, *WORKS, "stopped", "idle", "dead"))}
"""The rank of each kind of activity in a list, most urgent first."""


class AgentRow(NamedTuple):
    """The facts about one agent that its row in the tree or the table shows."""

    record: AgentRecord
    name: str
    """The shown name of the agent, which commands accept."""
    activity: Activity
    seconds: float
    """Seconds since the present activity began; 0 if unknown."""
    rate: float
    """Tokens of its answer a second, lately."""
    silent: float
    """Seconds since the latest heartbeat while the agent works; else 0."""
    turns: int
    inbox: int
    restarts: int
    tokens: int
    """Tokens used by the agent, or by it and all agents below it; the next field is their cost in micro-dollars."""
    usd: int
    host: str
    """The name of the agent's host, if there are several hosts; else empty."""
    found_by: str = ""
    """The text by which the database found the agent; empty if it was not searched for."""

    @property
    def uuid(self) -> str:
        """Return the uuid of the agent."""
        return self.record.uuid

    @property
    def works(self) -> bool:
        """Return whether the agent is in a turn that goes on without a person."""
        return self.activity.kind in WORKS

    @property
    def waits(self) -> bool:
        """Return whether the agent waits for a person."""
        return self.activity.kind in NEEDS_A_PERSON

    def has(self, wanted: str) -> bool:
        """Return whether name, state or host contain a lower-case text, or the database found the agent by it."""
        return self.found_by == wanted != "" or wanted in f"{self.name} {self.activity.word} {self.host}".casefold()


def agent_rows(snapshot: Snapshot, now: int, branches: bool = False) -> list[AgentRow]:
    """Return a row for each agent in a snapshot's list, dead ones included.

    Args:
        snapshot: the snapshot to show.
        now: milliseconds since 1970.
        branches: whether tokens and cost of a row include all descendants, dead ones too.
    """
    asks = {call.agent: Activity("asks", f"asks: {one_line(call.tool)}") for call in snapshot.questions.values()}
    spent = snapshot.branches if branches else {}
    text = snapshot.wish.text if snapshot.wish is not None else ""
    rows = []
    for record in snapshot.listed:
        uuid, statistics = record.uuid, snapshot.statistics.get(record.uuid)
        tokens, usd = spent.get(uuid, (record.spent_tokens, record.spent_usd))
        state, since = (statistics.state, statistics.since) if statistics is not None else (record.status, 0)
        turns, inbox = (statistics.turns, statistics.inbox) if statistics is not None else (0, 0)
        sign = snapshot.signs.get(uuid) if is_in_turn(state) else None
        asked = asks.get(uuid)
        words = asked if asked is not None else activity(state, sign is not None and bool(sign.tokens))
        rate, silent = (sign.rate, sign.seconds) if sign is not None else (0.0, 0.0)
        lasts, restarts = (now - since) / 1_000 if since else 0.0, snapshot.restarts.get(uuid, 0)
        figures = (lasts, rate, silent, turns, inbox, restarts, tokens, usd)
        host, found_by = snapshot.hosts.get(record.owner or "", ""), text if uuid in snapshot.hits else ""
        rows.append(AgentRow(record, snapshot.names[uuid], words, *figures, host, found_by))
    return rows


def colour_of(kind: str, colours: Palette) -> str:
    """Return the colour of a kind of activity."""
    if kind in WORKS:
        return colours.accent
    return colours.waits if kind in NEEDS_A_PERSON or kind == "stopped" else colours.past


def below(records: Sequence[AgentRecord], chosen: Collection[str]) -> int:
    """Return the number of living agents below these in the supervision tree, without these themselves."""
    children: dict[str | None, list[AgentRecord]] = {}
    for record in records:
        children.setdefault(record.supervisor_uuid, []).append(record)
    uuids, stack = set[str](), list(chosen)
    while stack:
        for child in children.get(stack.pop(), ()):
            if child.uuid not in uuids:
                uuids.add(child.uuid)
                stack.append(child.uuid)
    living = {record.uuid for record in records if record.living}
    return len((uuids & living) - set(chosen))
