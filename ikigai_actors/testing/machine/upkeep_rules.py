"""The rules for maintenance of the database: exporting and importing branches, and pruning the dead.

A branch is imported twice into a separate database, so that it does not disturb the simulation. A prune works on the
simulation's database, and any of its commits may fail, or be the last one before a crash.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ikigai_actors.agent.turn.ways import RESULT
from ikigai_actors.errors import CommitUnknown, IkigaiError, StoreUnavailable
from ikigai_actors.records.agents.registry import make_root
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.transfer.export import export_file
from ikigai_actors.records.transfer.graft import Import, Imported, ImportFile
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.hosts.host import claim_new
from ikigai_actors.store.memory import empty_image
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.store.unit import write_alone
from ikigai_actors.testing.machine.base import AGENTS
from ikigai_actors.testing.machine.targeted_rules import AimedRules
from ikigai_actors.testing.simulation.process import Broken

DEAD_FOR = st.sampled_from((0, 0, 60, 600))
"""The least number of seconds that an agent must have been dead to be pruned."""

FEW_ROWS = 3
"""The number of rows that a prune deletes in one transaction. Most prunes take several."""

ELSEWHERE = "elsewhere"
"""The host of the database into which branches are imported."""


class UpkeepRules(AimedRules):
    """The rules of `AgentTreeMachine` for maintenance."""

    @rule(who=AGENTS, merges=st.booleans())
    def export_import(self, who: int, merges: bool) -> None:
        """Export a branch, perhaps after a merge, and import it elsewhere."""
        before = len(self.ledger.known)
        if merges and len(self.living()) < self.LIMIT:
            self.fork_of(self.agent(who), "go")
            self.attempt(self.world.settle)
        if len(self.ledger.known) > before:
            by, child = self.agents(who, before)
            self.merge_of(by, child, RESULT)
        self.attempt(lambda: self.check_transfer(self.agent(who).uuid))

    @rule(seconds=DEAD_FOR)
    def prune(self, seconds: int) -> None:
        """Prune agents that have been dead for this many seconds, unless their histories are needed."""
        self.upkeep.before = self.world.clock.now_ms() + 1 - 1_000 * seconds
        self.attempt(self._finish_prune, lambda _: self.upkeep.check_prune(self.world.process.looked_at))

    def _finish_prune(self) -> None:
        while True:
            with suppress(StoreUnavailable, CommitUnknown):  # the next one finishes what this one has left
                prune_logs(self.system._store, self.upkeep.before, self.world.clock.now_ms(), FEW_ROWS)
                return

    @rule(who=AGENTS, deep=st.booleans(), moves=st.booleans())
    def prune_line(self, who: int, deep: bool, moves: bool) -> None:
        """Kill an agent and its child, perhaps not the grandchild, and prune the dead."""
        before = len(self.ledger.known)
        self.fork_line(who, length=3 if deep else 2)
        born = len(self.ledger.known) - before
        for number in range(before, before + min(born, 2)):
            self.kill_agent(self.agent(number), spread=False)
        self.prune(0)
        if moves:
            self.export_import(who, merges=False)

    def check_upkeep(self) -> None:
        """Check the pruned histories once more, and that all remaining agents can be exported and imported."""
        if self.upkeep.pruned:
            process = None
            while process is not self.world.process:  # one that ends leaves some to the next
                process = self.world.process
                self.attempt(self._finish_prune)
            self.upkeep.check_pruned(self.world.process.looked_at)
            self.check_transfer(self.system.root.uuid)

    def check_transfer(self, top: str) -> None:
        """Check ``transfer`` for an agent with all below it: each import has the same contents as the export."""
        store, now = self.world.process.looked_at, self.world.clock.now_ms()
        with tempfile.TemporaryDirectory() as directory, _another_database(now) as other:
            file = Path(directory, "branch")
            export_file(store, top, file, now=now)
            records = map(json.loads, file.read_bytes().splitlines())
            known = [record["uuid"] for record in records if record["record"] == "agent"]
            for _ in range(2):  # the second time all their uuids are taken
                try:
                    unit = Import(ImportFile.of(file, "keep"), None, ELSEWHERE, now, self.world.random_bytes)
                    done: Imported = write_alone(other, unit)
                except IkigaiError as refusal:
                    raise Broken(f"transfer: {refusal}") from refusal
                if wrong := check(other):
                    raise Broken(f"transfer: after an import {wrong[0].invariant}: {wrong[0].agent}: {wrong[0].text}")
                there = dict(zip(known, (agent.uuid for agent in done.agents), strict=True))
                self.upkeep.check_imported(top, other, there)


@contextmanager
def _another_database(now: int) -> Iterator[Store]:
    """Open another database with agent 0, owned by a host that does nothing; yield its store."""

    def begin(tx: Transaction) -> None:
        claim_new(tx, ELSEWHERE)
        make_root(tx, "agent 0", now)

    store = SQLiteStore(None, now_ms=lambda: now, image=empty_image())
    try:
        store.write(begin)
        yield store
    finally:
        store.close()
