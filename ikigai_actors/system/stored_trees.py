"""The stored trees of agents, as toolsets use them."""

from ikigai_actors.actors.clock import Clock
from ikigai_actors.records.agents.trees import BeginWrite, MarkApplied, MergeTrees, trees_of
from ikigai_actors.store.base import Store
from ikigai_actors.store.journal import Journal
from ikigai_actors.tools.trees.tree import Copied, TreeMerge, TreeRows, TreeStore


class StoredTrees(TreeStore):
    """The stored file trees of agents, for toolsets. The journal commits their writes."""

    def __init__(self, store: Store, journal: Journal, clock: Clock) -> None:
        self._store, self._journal, self._clock = store, journal, clock

    def of(self, agent: str, base: str) -> TreeRows:
        return self._store.read(lambda tx: trees_of(tx, agent, base))

    def begin_write(self, agent: str, copied: Copied, position: int, keep_turns: bool) -> int:
        layer: int = self._journal.perform(BeginWrite(agent, copied, position, keep_turns, self._clock.now_ms()))
        return layer

    def merge(self, merge: TreeMerge, upper: int) -> None:
        self._journal.perform(MergeTrees(merge._replace(created_at=self._clock.now_ms()), upper))

    def applied(self, agent: str, base: str) -> None:
        self._journal.perform(MarkApplied(agent, base, self._clock.now_ms()))
