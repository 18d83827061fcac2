"""The laws of experiments, as the commits of a run tell them.

untouched   of a trial its experiment alone tells, which supervises it; the log that it goes on from gets nothing
inside      who has the setting ``effects`` starts no tool and asks nobody; nothing of what it calls happens
numbers     births and verdicts count 1, 2, 3 … in the book (fsck's law of experiments, at each commit)
bounded     an experiment has no more trials than its plan asks for, and no more without a verdict than it may
function    what the book says is what its plan asks for, given the verdicts
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.behaviour.book import Book
from ikigai_actors.behaviour.plans.plan import TrialPlan
from ikigai_actors.records.messages import Kind
from ikigai_actors.testing.simulation.process import Broken
from ikigai_actors.testing.simulation.store import RanStatement, StoredChange, Written

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation


class Bounds(NamedTuple):
    """What an experiment may do."""

    most: int
    """Trials."""
    parallel: int
    """Of these in flight."""


class ExperimentOracle:
    """Follows the experiments of a run."""

    def __init__(self, world: "Simulation", bounds: Bounds, outside: frozenset[str]) -> None:
        """Make one for a world without any commit yet.

        Args:
            world: the world.
            bounds: what each experiment in it may do.
            outside: texts of mails and prompts that models write in trials alone, where nothing comes of them.
        """
        self._world, self._bounds, self._outside = world, bounds, outside
        self.inside: set[str] = set()
        """The agents with the setting ``effects``."""
        self.terms: dict[str, Mapping[str, Any]] = {}
        """Of each experiment, by the uuid of its agent."""
        self._births: dict[str, int] = {}
        self._verdicts: dict[str, int] = {}

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check one commit."""
        rows = [one.row[:5] for one in changes if isinstance(one, Written) and one.table == "messages"]
        messages = [(uuid, kind, content, json.loads(data or "{}")) for uuid, _, kind, content, data in rows]
        makers = {uuid: data["by"] for uuid, kind, _, data in messages if kind == Kind.FORK and "by" in data}
        for change in changes:
            if isinstance(change, RanStatement) and change.query == "register":
                self._born(change.parameters, makers)
            elif isinstance(change, Written) and change.table == "mail":
                sender, body = change.row[2], change.row[4]
                if sender in self.inside and body in self._outside:
                    self._broken(f"inside: agent {sender} sends the mail {body!r}")
        for uuid, kind, content, data in messages:
            self._wrote(uuid, kind, content, data, makers)
        for uuid, born in self._births.items():
            judged = self._verdicts.get(uuid, 0)
            if born > self._bounds.most or born - judged > self._bounds.parallel:
                self._broken(f"bounded: experiment {uuid} has {born} trials, and {judged} verdicts")

    def _born(self, given: Mapping[str, Any], makers: Mapping[str, str]) -> None:
        uuid = given["uuid"]
        if given["parent"] in self.inside:
            self.inside.add(uuid)
        if uuid in makers and given["supervisor"] != makers[uuid]:
            self._broken(f"untouched: trial {uuid} of {makers[uuid]} is supervised by {given['supervisor']}")

    def _wrote(self, uuid: str, kind: str, content: str, data: Mapping[str, Any], makers: Mapping[str, str]) -> None:
        if kind == Kind.CONFIGURE and data.get("effects") is not None:
            self.inside.add(uuid)
        elif kind in (Kind.TOOL_CALL, Kind.APPROVAL) and uuid in self.inside:
            self._broken(f"inside: agent {uuid} writes {kind} {dict(data)}")
        elif kind == Kind.USER and content in self._outside:
            self._broken(f"inside: agent {uuid} gets the prompt {content!r}")
        elif kind == Kind.FORK and (maker := makers.get(data.get("child", ""), uuid)) != uuid:
            self._broken(f"untouched: the log of agent {uuid} tells of trial {data['child']} of {maker}")
        elif kind == Kind.FORK and "number" in data:
            self._births[uuid] = self._births.get(uuid, 0) + 1
        elif kind == Kind.NOTE:
            self._verdicts[uuid] = self._verdicts.get(uuid, 0) + len(data.get("verdicts", ()))
            self.terms.update({uuid: data["terms"]} if "terms" in data else {})

    def _broken(self, what: str) -> None:
        self._world.process.broken(what)


def check_function(book: Book, plan: TrialPlan, parallel: int) -> None:
    """Check ``function``: a book has the trials that a plan asks for by number, given the verdicts in order."""
    asked = told = 0
    while asked < len(book.trials):
        if asked - told < parallel and (trial := plan.ask()) is not None:
            asked += 1
            born = book.trials[asked]
            if (trial.number, trial.of, trial.prompt) != (asked, born.of, born.prompt):
                raise Broken(f"function: the book has {born}, and the plan asks for {trial}")
        elif told + 1 in book.judged:
            told += 1
            plan.tell(told, book.judged[told].verdict)
        else:
            raise Broken(f"function: the plan does not ask for trial {asked + 1} of {book.terms} yet")
