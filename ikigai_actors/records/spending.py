"""The tokens that all agents have spent since the database was made, on any host.

The stored messages are summed up once, a part at a time, so that millions of messages delay nothing. From then on each
committed message is added. There is no sum until all stored messages are counted.
"""

import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

from ikigai_actors.providers.base import NO_TOKENS, Usage
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.figures import FIRST_PLACE, MessagePlace, spending_after
from ikigai_actors.records.messages.messages import SPENDING, Message
from ikigai_actors.records.messages.replies import spent_of
from ikigai_actors.store.base import Store, Transaction

_BATCH = 2_000
"""Messages that are read at once."""

_SELDOM = 20.0
"""Rows are read again at the earliest after this many times as long as the last read took."""

STRETCH = 0.1
"""The seconds of one stretch of reading."""

Models = Mapping[str, Usage]
"""Tokens by model, as the providers name them."""


class Sums(NamedTuple):
    """The tokens that one agent, and all agents together, have used, by model."""

    own: Models
    everybody: Models


class Charged(NamedTuple):
    """The tokens and dollars in the rows of all agents: counted by services, or else reserved for requests."""

    tokens: int = 0
    usd: int = 0
    """The sum in micro-dollars."""


class Expenses:
    """The tokens that all agents have used. Any thread may call `hear` and `sums`; only one thread calls the others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._agents: dict[str, dict[str, Usage]] = {}
        self._everybody: dict[str, Usage] = {}
        self._counted: dict[str, int] = {}  # of each agent the position up to which its messages are counted
        self._place: MessagePlace | None = FIRST_PLACE  # up to where messages are read; None when all are
        self._held: list[Message] = []  # what came meanwhile
        self.charged = Charged()
        """Of all agents, at the latest look."""
        self._look_again = 0.0
        self._uncounted: dict[str | None, int] = {}  # tokens that rows have and messages have not, at the latest look

    def hear(self, message: Message) -> None:
        """Add the tokens of a committed message."""
        if message.kind not in SPENDING:
            return
        with self._lock:
            if self._place is None:
                self._count(message)
            else:
                self._held.append(message)

    def read(self, store: Store, rows_too: bool = False) -> None:
        """Read the next stretch of the database.

        ``rows_too``: also read the sums in the rows of all agents. With a million agents this takes long, and is done
        rarely.

        Pass every committed message to `hear` from before the first `read` on. Raises `StoreError`; the next `read`
        continues at the same place.
        """
        began = monotonic()
        if rows_too and began >= self._look_again:
            self.charged = Charged(*store.read(_spent_in_all))
            self._look_again = began + _SELDOM * (monotonic() - began)
        until = monotonic() + STRETCH
        while (place := self._place) is not None and monotonic() < until:
            batch = spending_after(store, place, _BATCH)
            with self._lock:
                for message in batch.messages:  # others report damaged ones
                    self._count(message)
                self._place = batch.place
                if batch.place is None:
                    for message in self._held:
                        self._count(message)
                    self._held.clear()

    def sums(self, uuid: str) -> Sums | None:
        """Return the tokens of an agent and of all agents; None until all stored messages are counted."""
        with self._lock:
            if self._place is not None:
                return None
            return Sums(dict(self._agents.get(uuid, {})), dict(self._everybody))

    def is_most(self, uuid: str | None, tokens: int) -> bool:
        """Return whether ``tokens``, the sum in a row, exceeds the counted tokens, now and at the previous call.

        Two calls must agree because a row may be read before the message for which it was charged. ``uuid`` is None for
        all agents.
        """
        if (sums := self.sums(uuid or "")) is None:
            return False
        counted = in_all(sums.everybody if uuid is None else sums.own)
        cached = counted.cache_creation_input_tokens + counted.cache_read_input_tokens
        before, now = self._uncounted.get(uuid, 0), tokens - counted.input_tokens - counted.output_tokens - cached
        self._uncounted[uuid] = now
        return min(before, now) > 0

    def _count(self, message: Message) -> None:
        """Count a message once, although it may both be read and be passed to `hear`.

        Positions grow and have no holes.
        """
        if message.id <= self._counted.get(message.agent_uuid, 0):
            return
        self._counted[message.agent_uuid] = message.id
        spent = spent_of(message)
        if spent is not None:
            for sums in (self._agents.setdefault(message.agent_uuid, {}), self._everybody):
                sums[spent.model] = sums.get(spent.model, NO_TOKENS) + spent.usage


def in_all(models: Models) -> Usage:
    """Return the sum of the tokens over all these models."""
    tokens = NO_TOKENS
    for each in models.values():
        tokens = tokens + each
    return tokens


def _spent_in_all(tx: Transaction) -> tuple[int, int]:
    """Return the tokens and micro-dollars that all agents have spent. The database reads every agent's row."""
    [(tokens, usd)] = tx.run("spent_in_all")
    return tokens or 0, usd or 0


class OwnSpending(NamedTuple):
    """The tokens and dollars that an agent has spent itself."""

    uuid: str
    parent_uuid: str | None
    spent_tokens: int
    spent_usd: int
    """The amount in micro-dollars."""


class Dearest(NamedTuple):
    """The spending of all agents, and of the branches that have spent most."""

    tokens: int
    usd: int
    """The sum in micro-dollars."""
    branches: dict[str | None, tuple[int, int]]
    """The spending of the dearest branches, by the uuid of their top agent, a child of agent 0: tokens and
    micro-dollars. None is agent 0 itself.
    """


def dearest_branches(tx: Transaction, most: int) -> Dearest:
    """Return the spending of all agents, and of this many branches of agent 0. The database reads all agents."""
    rows = tx.run("dearest_branches", most=most)
    tokens, usd = rows[0][3:] if rows else (0, 0)
    return Dearest(tokens, usd, {row[0]: (row[1], row[2]) for row in rows})


def own_spendings(tx: Transaction) -> list[OwnSpending]:
    """Return the spending of each agent itself. The database reads a few columns of every agent's row."""
    return [OwnSpending._make(row) for row in tx.run("spent_by_lineage")]


def branch_spendings(tx: Transaction, agents: Collection[AgentRecord]) -> dict[str, tuple[int, int]]:
    """Return the spending as `spent_by_branches` does, for these agents. The database reads all their descendants."""
    uuids = [agent.uuid for agent in agents if agent.parent_uuid is not None]
    spent = {top: (tokens, usd) for top, tokens, usd in tx.run("spent_below", uuids=uuids)}
    for root in (agent for agent in agents if agent.parent_uuid is None):
        spent[root.uuid] = _spent_in_all(tx)
    return spent


def spent_by_branches(everybody: Sequence[OwnSpending]) -> dict[str, tuple[int, int]]:
    """Return the spending of each agent with all its descendants, by uuid: tokens and micro-dollars."""
    sums = {record.uuid: (record.spent_tokens, record.spent_usd) for record in everybody}
    parents = {record.uuid: record.parent_uuid for record in everybody}
    missing = Counter(parents.values())  # how many children are still to be added, by parent
    ready = [uuid for uuid in sums if not missing[uuid]]
    while ready:
        own = sums[uuid := ready.pop()]
        if (above := parents[uuid]) is not None and above in sums:
            sums[above] = sums[above][0] + own[0], sums[above][1] + own[1]
            missing[above] -= 1
            if not missing[above]:
                ready.append(above)
    return sums
