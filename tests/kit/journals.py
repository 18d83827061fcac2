"""A journal under test: units of odd kinds, and what became of each."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store import Transaction
from ikigai_actors.store.journal import CommitResult, Done
from ikigai_actors.store.unit import Locked, TreeLock, Unit
from tests.kit.databases import DEADLINE
from tests.kit.logs import write_log
from tests.kit.trees import says

Step = Callable[[Transaction], object]


def nothing(tx: Transaction) -> object:
    """A unit that only answers."""
    return "nothing"


@dataclass
class Task(Unit):
    """A unit that does what a test says, and perhaps appends a message."""

    does: Step = nothing
    touches: tuple[str, ...] = ()
    tree: TreeLock = TreeLock.NONE
    alone: bool = False
    concerns_others: bool = False
    messages: tuple[Message, ...] = ()
    locked: list[Mapping[str, Locked]] = field(default_factory=list)
    """What it found locked, at each run."""

    def write(self, tx: Transaction, locked: Mapping[str, Locked]) -> object:
        self.locked.append(dict(locked))
        answer = self.does(tx)
        write_log(tx, self.messages)
        return answer


class Gate:
    """What a unit does that holds up the journal, within its transaction, until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self._open = threading.Event()

    def __call__(self, tx: Transaction) -> object:
        self.entered.set()
        assert self._open.wait(DEADLINE)
        return "through"

    def pass_once(self) -> None:
        """Hold up whoever comes first; the others pass."""
        if not self.entered.is_set():
            self.entered.set()
            assert self._open.wait(DEADLINE)

    def open(self) -> None:
        """Let the journal go on."""
        self._open.set()


class Answers:
    """What became of units, by the name that the test gave each: in order, every answer counted."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self._verdicts: dict[str, CommitResult] = {}
        self._changed = threading.Condition()

    def to(self, name: str) -> Done:
        """A callback for the unit of this name."""

        def done(verdict: CommitResult) -> None:
            with self._changed:
                self.order.append(name)
                self._verdicts[name] = verdict
                self._changed.notify_all()

        return done

    def __getitem__(self, name: str) -> CommitResult:
        """The unit's verdict, waited for."""
        with self._changed:
            assert self._changed.wait_for(lambda: name in self._verdicts, DEADLINE), f"no answer to {name}"
            return self._verdicts[name]

    def error(self, name: str) -> Exception:
        """The error of a unit that was refused or failed."""
        error = getattr(self[name], "error", None)
        assert isinstance(error, Exception)
        return error


def note(agent: str, *ids: int, does: Step = nothing, alone: bool = False, tree: TreeLock = TreeLock.NONE) -> Task:
    """A unit that appends to an agent's log, with no fence to pass."""
    return Task(does, (agent,), tree, alone, messages=says(agent, *ids))
