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
        for change in changes:
            if isinstance(change, RanStatement):
                self._ran(change.query, change.parameters)
        messages = [
            Message.from_row(change.row)
            for change in changes
            if isinstance(change, Written) and change.table == "messages"
        ]
        rows = {
            change.row[:2]: change.row[2:]
            for change in changes
            if isinstance(change, Written) and change.table == "spendings"
        }
        self._check_paid(messages, rows)
        for message in messages:
            if message.kind == Kind.USER:
                self._of_turns[message.agent_uuid, message.id] = message.data.get("labels", {})
        self._open = {uuid: agent.turn for uuid, agent in self._commits.agents.items()}

    def check_rest(self) -> None:
        """Check ``sums``."""
        if wrong := self._world.process.looked_at.read(_wrong_sums):
            raise Broken(f"sums: {wrong}")

    def _ran(self, query: str, parameters: Mapping[str, Any]) -> None:
        match query:
            case "set_root_labels":
                [root] = [uuid for uuid, agent in self._commits.agents.items() if agent.supervisor is None]
                self._own[root] = labels_in(parameters["labels"])
            case "register":
                self._own[parameters["uuid"]] = born = labels_in(parameters["labels"])
                above = self._in_force(parameters["supervisor"])
                if above is not None and {**born, FORK: ""} != {**above, FORK: ""}:
                    self._broken(
                        f"heirs: agent {parameters['uuid']} has the labels {born}; {above} are in force above it"
                    )

    def _in_force(self, uuid: str) -> Mapping[str, str] | None:
        """The labels that were in force before the commit; None for an agent that came from a file."""
        if (own := self._own.get(uuid)) is None:
            return None
        return {**own, **self._of_turns.get((uuid, self._open.get(uuid, 0)), {})}

    def _check_paid(self, messages: Iterable[Message], rows: Mapping[tuple[Any, ...], tuple[Any, ...]]) -> None:
        spent_by_message = {
            (message.agent_uuid, message.id): (message.created_at, spent.usage.all_tokens)
            for message in messages
            if message.kind in SPENDING and (spent := spent_of(message)) is not None
        }
        if spent_by_message.keys() != rows.keys():
            self._broken(f"paid: messages tell costs at {sorted(spent_by_message)}, and rows are of {sorted(rows)}")
            return
        for place, (written, tokens) in spent_by_message.items():
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
        sums_now = {value: sums_of.tokens for value, sums_of in spending(tx, key, 0).items()}
        if sums_now != dict(sums):
            return f"by {key} {sums_now} was spent, by its rows {dict(sums)}"
    return ""
