"""Stores whose transactions stop before every statement and before COMMIT, and note the agents that they notify of."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol

from ikigai_actors.store.base import Row, SchemaTransaction, Store, T, Transaction
from ikigai_actors.store.forwarding import ForwardingStore
from ikigai_actors.store.word_index import WordIndex
from tests.jar.scheduler import COMMIT, Lock, Scheduler, locks_of

Gate = Callable[[str, set[Lock]], None]
"""Stops before a statement, which is named, with what it locks."""


class HearingStore(ForwardingStore):
    """Notes the agents of which the transactions notify others."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.heard: str | None = None
        """The agents that the latest transaction has named, or that it may be any; None when nothing was committed."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        self.heard = None
        result, self.heard = super().write(lambda tx: self._run(tx, work))
        return result

    def _run(self, tx: Transaction, work: Callable[[Transaction], T]) -> tuple[T, str]:
        hearing = _Hearing(tx)
        return work(hearing), hearing.told


class GatedStore(HearingStore):
    """A store whose transactions stop before every statement, and before COMMIT."""

    def __init__(self, store: Store, name: str, scheduler: Scheduler, committing: Callable[[], object]) -> None:
        """Gate a store for a session; ``committing`` is called when a transaction is about to commit."""
        super().__init__(store)
        self._name, self._scheduler, self._committing = name, scheduler, committing
        self._runs = 0

    def write(self, work: Callable[[Transaction], T]) -> T:
        self._runs = 0
        try:
            return super().write(work)
        finally:
            self._scheduler.over(self._name)

    def _run(self, tx: Transaction, work: Callable[[Transaction], T]) -> tuple[T, str]:
        self._runs += 1
        if self._runs > 1:
            self._scheduler.again(self._name)
        gated = _Gated(tx, self._gate)
        result = work(gated)
        self._gate(COMMIT, set())
        self._committing()
        return result, gated.told

    def _gate(self, what: str, locks: set[Lock]) -> None:
        self._scheduler.gate(self._name, what, locks)


class _Forwarding(Transaction, Protocol):
    """A transaction that passes every call on to another one."""

    _tx: Transaction

    @property
    def schema(self) -> SchemaTransaction:
        return self._tx.schema

    @property
    def words(self) -> WordIndex:
        return self._tx.words

    @property
    def heard(self) -> int:
        return self._tx.heard

    def run(self, query: str, **parameters: Any) -> list[Row]:
        return self._tx.run(query, **parameters)

    def ask(self, query: str, **parameters: Any) -> Callable[[], list[Row]]:
        return self._tx.ask(query, **parameters)

    def run_all(self, query: str, each: Sequence[dict[str, Any]]) -> None:
        self._tx.run_all(query, each)

    def require(self, query: str, otherwise: Callable[[Transaction], Exception], **parameters: Any) -> None:
        self._tx.require(query, otherwise, **parameters)

    def defer(self, query: str, **parameters: Any) -> None:
        self._tx.defer(query, **parameters)

    def append(self, rows: Sequence[Row], table: str = "messages") -> None:
        self._tx.append(rows, table)

    @property
    def locks_rows(self) -> bool:
        return self._tx.locks_rows

    def share_tree(self) -> None:
        self._tx.share_tree()

    def end_stalled(self, host: str, before: int) -> None:
        self._tx.end_stalled(host, before)

    def hold(self, host: str) -> None:
        self._tx.hold(host)

    def held(self, hosts: Sequence[str]) -> set[str]:
        return self._tx.held(hosts)

    def is_hosted(self) -> bool:
        return self._tx.is_hosted()

    def notify(self, agents: Collection[str] | None = None) -> None:
        self._tx.notify(agents)


class _Hearing(_Forwarding):
    """A transaction that notes the agents that it names to others."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.told = "nobody"

    def notify(self, agents: Collection[str] | None = None) -> None:
        self.told = "anybody" if agents is None else " ".join(sorted(agents))
        super().notify(agents)


class _Gated(_Hearing):
    """A transaction that stops before every statement."""

    def __init__(self, tx: Transaction, gate: Gate) -> None:
        super().__init__(tx)
        self._gate = gate

    @property
    def schema(self) -> SchemaTransaction:
        return _GatedSchema(self._tx.schema, self._gate)

    def run(self, query: str, **parameters: Any) -> list[Row]:
        self._gate(query, locks_of(query, parameters))
        rows = super().run(query, **parameters)
        self._send()
        return rows

    def ask(self, query: str, **parameters: Any) -> Callable[[], list[Row]]:
        rows = self.run(query, **parameters)
        return lambda: rows

    def share_tree(self) -> None:
        self._gate("share_tree", {("tree", "shared")})
        super().share_tree()
        self._send()

    def _send(self) -> None:
        """Let no statement wait for the next one: whatever comes between two trips comes between two statements."""
        self._tx.schema.execute("SELECT 1")


class _GatedSchema(SchemaTransaction):
    """Whole tables, with a stop before each statement."""

    def __init__(self, schema: SchemaTransaction, gate: Gate) -> None:
        self._schema, self._gate = schema, gate

    def execute(self, sql: str) -> list[Row]:
        self._gate(sql, set())
        return self._schema.execute(sql)

    def tables(self) -> set[str]:
        self._gate("tables", set())
        return self._schema.tables()

    def columns(self, table: str) -> list[str]:
        self._gate(f"columns of {table}", set())
        return self._schema.columns(table)

    def scan(self, table: str, columns: Sequence[str]) -> Iterator[list[Row]]:
        self._gate(f"scan {table}", set())
        return self._schema.scan(table, columns)

    def load(self, table: str, columns: Sequence[str], batches: Iterable[Sequence[Row]]) -> None:
        self._gate(f"load {table}", set())
        self._schema.load(table, columns, batches)
