"""Two journals on one database, and the order in which their transactions meet."""

from collections.abc import Callable

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.store import open_store
from ikigai_actors.store.journal import CommitResult, Journal
from ikigai_actors.store.unit import Unit
from tests.kit.databases import DEADLINE, Admin, eventually
from tests.kit.faults import HeldStore
from tests.kit.journals import Answers


def those_who_wait(admin: Admin) -> int:
    """How many transactions on the PostgreSQL server wait for another's lock."""
    return len(
        admin.execute("SELECT pid FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0").fetchall()
    )


def somebody_waits(admin: Admin) -> bool:
    """Whether some transaction on the PostgreSQL server waits for another's lock."""
    return those_who_wait(admin) > 0


class Writer:
    """A journal with a connection of its own."""

    def __init__(self, url: str, host: str) -> None:
        self.store = HeldStore(open_store(url))
        self.journal = Journal(self.store, host, SystemClock())
        self.answers = Answers()
        self._count = 0

    def start(self) -> None:
        """Let it write."""
        self.journal.start()

    def submit(self, unit: Unit) -> Callable[[], CommitResult]:
        """Hand over a unit; what is returned waits for its verdict."""
        self._count += 1
        name = str(self._count)
        self.journal.submit(unit, self.answers.to(name))
        return lambda: self.answers[name]

    def close(self) -> None:
        """Write what was submitted, and give the connection back."""
        self.journal.close(DEADLINE)
        self.store.close()


def meet(first: Writer, unit: Unit, second: Writer, other: Unit, waits: Callable[[], object]) -> list[CommitResult]:
    """Hold the first unit before its COMMIT until the other one has come and waits; return both verdicts."""
    first.store.hold()
    second.store.tried.clear()
    first_answer = first.submit(unit)
    assert first.store.held.wait(DEADLINE)
    two = second.submit(other)
    assert second.store.tried.wait(DEADLINE)
    try:
        eventually(waits, "the second transaction's wait")
    finally:
        first.store.let_go()
    return [first_answer(), two()]
