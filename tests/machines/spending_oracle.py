"""On whose account agents work, and what that has cost, as the commits tell it: laws of `BudgetMachine`.

    paid      what a message tells of the cost of a request is a row of ``spendings`` in the same commit, for the labels
              that are in force; there is no other row
    heirs     a child has the labels that are in force where it is made, with what the fork puts over them
    sums      at rest the sums by a label are those of the rows

An agent that came from a file is looked at from its import on.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ikigai_actors.records.agents.labels import labels_in, set_id, set_of
from ikigai_actors.records.budgets.spendings import kept_labels, spending
from ikigai_actors.records.messages.messages import SPENDING, Kind, Message
from ikigai_actors.records.messages.replies import spent_of
from ikigai_actors.store.base import Transaction
from ikigai_actors.testing.machine.commit_invariants import CommitCheck
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation

ROOT, FORK, TURN = "root", "fork", "turn"
"""The labels of a run: of agent 0, and what forks and prompts put over those."""

WHO = ("ann", "bob")
"""Their values."""


class SpendingOracle:
    """Follows the labels of a run."""

    def __init__(self, world: "Simulation", commits: CommitCheck) -> None:
        """Make one for a world without any commit yet; ``commits`` follows it, too, and hears of each commit first."""
        self._world, self._commits = world, commits
        self._own: dict[str, Mapping[str, str]] = {}
        self._of_turns: dict[tuple[str, int], Mapping[str, str]] = {}
        """What prompts have put over them, by agent and position."""
        self._open: dict[str, int] = {}
        """The turns that were open before the commit."""

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check one commit."""
        for one in changes:
            if isinstance(one, RanStatement):
                self._ran(one.query, one.parameters)
        messages = [
            Message.from_row(one.row) for one in changes if isinstance(one, Written) and one.table == "messages"
        ]
        rows = {one.row[:2]: one.row[2:] for one in changes if isinstance(one, Written) and one.table == "spendings"}
        self._check_paid(messages, rows)
        for message in messages:
            if message.kind == Kind.USER:
                self._of_turns[message.agent_uuid, message.id] = message.data.get("labels", {})
        self._open = {uuid: one.turn for uuid, one in self._commits.agents.items()}

    def check_rest(self) -> None:
        """Check ``sums``."""
        if wrong := self._world.process.looked_at.read(_wrong_sums):
            raise Broken(f"sums: {wrong}")

    def _ran(self, query: str, given: Mapping[str, Any]) -> None:
        match query:
            case "set_root_labels":
                [root] = [uuid for uuid, one in self._commits.agents.items() if one.supervisor is None]
                self._own[root] = labels_in(given["labels"])
            case "register":
                self._own[given["uuid"]] = born = labels_in(given["labels"])
                above = self._in_force(given["supervisor"])
                if above is not None and {**born, FORK: ""} != {**above, FORK: ""}:
                    self._broken(f"heirs: agent {given['uuid']} has the labels {born}; {above} are in force above it")

    def _in_force(self, uuid: str) -> Mapping[str, str] | None:
        """The labels that were in force before the commit; None for an agent that came from a file."""
        if (own := self._own.get(uuid)) is None:
            return None
        return {**own, **self._of_turns.get((uuid, self._open.get(uuid, 0)), {})}

    def _check_paid(self, messages: Iterable[Message], rows: Mapping[tuple[Any, ...], tuple[Any, ...]]) -> None:
        told = {
            (one.agent_uuid, one.id): (one.created_at, spent.usage.all_tokens)
            for one in messages
            if one.kind in SPENDING and (spent := spent_of(one)) is not None
        }
        if told.keys() != rows.keys():
            self._broken(f"paid: messages tell costs at {sorted(told)}, and rows are of {sorted(rows)}")
            return
        for place, (written, tokens) in told.items():
            labels, at, counted, _ = rows[place]
            if (written, tokens) != (at, counted):
                self._broken(f"paid: message {place} tells {tokens} tokens at {written}; its row has {counted} at {at}")
            force = self._in_force(place[0])
            if force is not None and labels != set_id(set_of(force)):
                self._broken(f"paid: message {place} is not on the account of {force}")

    def _broken(self, what: str) -> None:
        self._world.process.broken(what)


def _wrong_sums(tx: Transaction) -> str:
    """What is wrong with the sums by a label; empty when nothing is."""
    sets = kept_labels(tx)
    rows = tx.schema.execute("SELECT labels, tokens FROM spendings")
    for key in (ROOT, FORK, TURN):
        sums: Counter[str] = Counter()
        for labels, tokens in rows:
            sums[sets.get(labels, {}).get(key, "")] += tokens
        found = {value: one.tokens for value, one in spending(tx, key, 0).items()}
        if found != dict(sums):
            return f"by {key} {found} was spent, by its rows {dict(sums)}"
    return ""
