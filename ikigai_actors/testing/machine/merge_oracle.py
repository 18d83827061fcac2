"""The merges of agents, checked by the commits: the invariant ``merge``.

A merge is committed with its row, when the child is in no turn. A merge begins where the last merge ended, so no
message is repeated or left out. The result of a merge is the child's latest answer since then, according to the copy of
the child's history. A merge is refused for lack of news only if there is none.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.testing.machine.history_oracle import Copy
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

if TYPE_CHECKING:
    from ikigai_actors.testing.machine.commit_invariants import CommitCheck
    from ikigai_actors.testing.simulation.world import Simulation


class MergeOracle:
    """Checks the merges of a run."""

    def __init__(self, world: "Simulation", histories: Mapping[str, Copy], commits: "CommitCheck") -> None:
        """Make the oracle for a world that has no commits yet.

        Args:
            world: the simulation.
            histories: the history of each agent, from copying.
            commits: has the living agents, and those in a turn.
        """
        self._world, self._histories, self._commits = world, histories, commits
        self._merged: dict[tuple[str, str], list[int]] = {}  # by both agents, the heads
        self._ends: dict[str, str] = {}  # with what agents have ended
        self._wrong: list[str] = []

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the merges that a commit writes."""
        rows = set[tuple[object, ...]]()
        for change in changes:
            match change:
                case RanStatement("add_merge", parameters):
                    rows.add((parameters["into"], parameters["child"], parameters["head"], parameters["message"]))
                case RanStatement("bury", parameters):
                    self._ends.update(dict.fromkeys(parameters["uuids"], str(parameters["reason"])))
        for change in changes:
            match change:
                case Written("messages", (into, position, Kind.MERGE, content, data, *_)):
                    self._check(into, position, content, json.loads(data), rows)
        wrong, self._wrong = self._wrong, []
        if wrong:
            self._world.process.broken(f"merge: {'; '.join(wrong)}")

    def news(self, into: str, child: str) -> set[int]:
        """Return the visible messages of an agent that another agent has not merged yet."""
        latest, history = self._latest(into, child), self._histories.get(child)
        return set() if history is None else {entry[0] for entry in _said(history) if entry[0] > latest}

    def check_refusal(self, into: str, child: str, before: set[int]) -> None:
        """Check the refusal of a merge because nothing was new.

        ``before`` are the new messages when the merge was asked for.
        """
        if before & self.news(into, child):
            raise Broken(f"merge: {into} hears that {child} has said nothing new, and it has")

    def _check(self, into: str, position: int, content: str, data: Mapping[str, Any], rows: set[Any]) -> None:
        child, head, since = data["from"], data["head"], data["since"]
        merge = f"message {position} of {into} merges {child} at {head}"
        latest, history = self._latest(into, child), self._histories.get(child, Copy())
        if (into, child, head, position) not in rows:
            self._wrong.append(f"{merge}, and has no row")
        if head != history.head:
            self._wrong.append(f"{merge}, which is at {history.head}")
        if latest and since != latest:
            self._wrong.append(f"{merge} from {since} on; it was merged at {latest} before")
        standing = self._commits.agents.get(child)
        if standing is not None and standing.turn and standing.status != "dead":
            self._wrong.append(f"{merge}, which is in a turn")
        if data["how"] == "result" and content != self._ends.get(child):
            answers = [text for place, kind, text, _ in _said(history) if place > since and kind != Kind.USER]
            if answers[-1:] != [content]:
                self._wrong.append(f"{merge} with {content!r}, its answers since {since} are {answers}")
        self._merged.setdefault((into, child), []).append(head)

    def _latest(self, into: str, child: str) -> int:
        return max(self._merged.get((into, child), ()), default=0)


def _said(history: Copy) -> list[tuple[int, str, str, str]]:
    """Return the visible prompts and answers of a history: position, kind, text and data of each."""
    counts = set(history.visible)
    said = (Kind.USER, Kind.ASSISTANT, Kind.OUTPUT)
    return [entry for entry in history.written if entry[0] in counts and entry[1] in said and entry[2].strip()]
