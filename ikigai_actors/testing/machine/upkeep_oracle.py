"""Pruned histories and imported branches, checked by the commits: the invariants ``prune`` and ``transfer``.

    prune                 a history is deleted as a whole if its agent died long ago, and no living or lately dead agent
                          descends from it; a reader gets `HistoryPruned`. All other histories are kept
    transfer              after its import an exported branch has the same agents and visible histories, in which merges
                          name the agents of the new database, the same mail, read and unread, the same rules that ask
                          or deny; and the same keys, unless its agents are copies with other uuids

The checks share no code with the statements that choose what is pruned, or with the code that writes and reads files.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ikigai_actors.errors import HistoryPruned
from ikigai_actors.records.agents.rules import every_rule
from ikigai_actors.records.log.heads import section
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.mail.mail import all_mail
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.once import kept_calls
from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.testing.machine.history_oracle import Copy, CopyingOracle
from ikigai_actors.testing.machine.key_oracle import KeyOracle
from ikigai_actors.testing.machine.rule_oracle import RuleOracle
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange
from ikigai_actors.testing.simulation.process import Broken

if TYPE_CHECKING:
    from ikigai_actors.testing.machine.commit_invariants import CommitCheck

Remembered = tuple[int, str, str, str | None]
"""The position, kind and text of a message; for a merge also the merged agent."""


class UpkeepOracle:
    """Checks which histories of a run are pruned, and that imported branches equal the exported ones."""

    def __init__(
        self,
        oracle: CopyingOracle,
        commits: "CommitCheck",
        ruled: RuleOracle,
        keys: KeyOracle,
        broken: Callable[[str], None],
    ) -> None:
        """Make the oracle for a world that has no commits yet.

        Args:
            oracle: has every history and mail.
            commits: has the supervisors, and the mails that were read.
            ruled: has the rules of agents.
            keys: has the results of calls with keys.
            broken: is called with each violation.
        """
        self._oracle, self._commits, self._ruled, self._broken = oracle, commits, ruled, broken
        self._keys = keys
        self._parents: dict[str, str] = {}
        self._died: dict[str, int] = {}
        self._taken_back: set[tuple[str, int]] = set()  # mails
        self.before = 0
        """The time, in milliseconds since 1970, before which an agent must have died to be pruned."""
        self.pruned: set[str] = set()
        """The agents that are pruned: they have no history."""

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Record births, deaths, withdrawn mail and pruned agents; check that exactly the due agents are pruned."""
        for change in changes:
            match change:
                case RanStatement("register", parameters):
                    self._parents[parameters["uuid"]] = parameters["parent"]
                case RanStatement("bury", parameters):
                    self._died.update(dict.fromkeys(parameters["uuids"], parameters["now"]))
                case RanStatement("delete_mail", parameters):
                    self._taken_back.add((parameters["recipient"], parameters["id"]))
                case RanStatement("withdraw_prompt", parameters):
                    if (
                        parameters["id"] in self._commits.agents[parameters["recipient"]].prompts
                    ):  # else it was read before
                        self._taken_back.add((parameters["recipient"], parameters["id"]))
                case RanStatement("mark_pruned", parameters):
                    if set(parameters["uuids"]) != (due := self.due()):
                        self._broken(f"prune: {sorted(parameters['uuids'])} are pruned, and {sorted(due)} are to be")
                    self.pruned.update(parameters["uuids"])

    def due(self) -> set[str]:
        """Return the agents that a prune must delete.

        These agents are long dead, and so is every agent whose history begins as a copy of one of theirs.
        """
        needed = set[str]()
        for uuid in self._commits.agents:
            above: str | None = uuid if self._died.get(uuid, self.before) >= self.before else None
            while above is not None and above not in needed:
                needed.add(above)
                above = self._parents.get(above)
        return self._commits.agents.keys() - needed - self.pruned

    def check_prune(self, store: Store) -> None:
        """Check that a finished prune has left nothing that had to be pruned."""
        if left := self.due():
            raise Broken(f"prune: {sorted(left)} are to be pruned, and are not")
        self.check_pruned(store)

    def check_pruned(self, store: Store) -> None:
        """Check that pruned histories are gone completely, and that readers get the error."""
        for uuid in self.pruned:
            if rows := store.read(partial(_rows_of, uuid)):
                raise Broken(f"prune: agent {uuid} is pruned, and this is left: {rows}")
            try:
                LogCache(store).load(uuid)
            except HistoryPruned:
                continue
            raise Broken(f"prune: the history of agent {uuid} is gone, and who reads it is not told")

    def below(self, top: str) -> set[str]:
        """Return an agent and all below it, by descent or supervision."""
        members, waiting = {top}, [top]
        while waiting:
            above = waiting.pop()
            for uuid, agent in self._commits.agents.items():
                if uuid not in members and above in (self._parents.get(uuid), agent.supervisor):
                    members.add(uuid)
                    waiting.append(uuid)
        return members

    def check_imported(self, top: str, store: Store, there: Mapping[str, str]) -> None:
        """Check that a branch is the same in another database as here.

        Args:
            top: the agent that was exported with all agents below it.
            store: the other database.
            there: the uuid in the other database of each agent.
        """
        if there.keys() != (due := self.below(top)):
            raise Broken(f"transfer: expected agents {sorted(due)} below {top}, got {sorted(there)}")
        logs, rules = LogCache(store), store.read(every_rule)
        calls = store.read(lambda tx: kept_calls(tx, there.values()))
        for uuid, other in there.items():
            if uuid in self.pruned:
                continue
            history = self._oracle.histories.get(uuid) or Copy()
            expected = [_copied(history, place, there) for place in history.shown]
            if (got := [_told(message) for message in logs.load(other).visible()]) != expected:
                raise Broken(f"transfer: agent {uuid} remembers {expected}, and after an import {got}")
            mails = self._mails(uuid)
            if (came := {row[1]: (row[4], row[6] is None) for row in store.read(partial(all_mail, other))}) != mails:
                raise Broken(f"transfer: agent {uuid} has the mails {mails}, and after an import {came}")
            strict = [(rule.decision, rule.tool, rule.scope) for rule in self._ruled.strict(uuid)]
            if (here := [(rule.decision, rule.tool, rule.scope) for rule in rules if rule.agent == other]) != strict:
                raise Broken(f"transfer: agent {uuid} has the rules {strict}, and after an import {here}")
            keys = self._keys.of(uuid) if other == uuid else {}
            if (known := {call.key: call.gave for call in calls if call.scope == other}) != keys:
                raise Broken(f"transfer: agent {uuid} has the keys {keys}, and after an import {known}")

    def _mails(self, uuid: str) -> dict[int, tuple[str, bool]]:
        """Return the mails to an agent by number: the body of each, and whether it is unread."""
        agent = self._commits.agents[uuid]
        unread = {*agent.unread, *agent.prompts}
        sent = {number: body for (to, number), body in self._oracle.mails.items() if to == uuid}
        kept = {number: body for number, body in sent.items() if (uuid, number) not in self._taken_back}
        return {number: (body, number in unread) for number, body in kept.items()}


def _rows_of(uuid: str, tx: Transaction) -> list[Row]:
    return [*(message.row() for message in section(tx, uuid, 0)), *all_mail(uuid, tx)]


def _told(message: Message) -> Remembered:
    merged = message.data["from"] if message.kind == Kind.MERGE else None
    return message.id, message.kind, message.content, merged


def _copied(history: Copy, place: int, there: Mapping[str, str]) -> Remembered:
    position, kind, content, data = history.written[place - 1]
    merged = json.loads(data)["from"] if kind == Kind.MERGE else None
    return position, kind, content, there.get(merged, merged) if merged is not None else None
