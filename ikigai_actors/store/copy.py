"""The copy of a whole database to an empty one, of the same kind or the other.

Every row of every table is read in one snapshot and written in one transaction, which makes the schema, too. So either
the copy is complete, or the target is as empty as before. Before COMMIT the rows are read back and compared with the
source: their number, and a sum of their hashes. The sum does not depend on the order, since the two databases sort
texts differently. The row of a running host is copied as that of an ended one: the host does not own the copy.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b

from ikigai_actors.errors import StoreError, StoreUnusable
from ikigai_actors.store.base import Row, SchemaTransaction, Store, Transaction
from ikigai_actors.store.migrations import create_schema, newest, require_schema, schema_version

Columns = dict[str, list[str]]
"""The columns of each table, by its name."""

_FIRST = ("agents", "batches", "budgets", "hosts")
"""Tables that others refer to."""
_BITS = 128


class TableSum:
    """The number of rows counted, and the sum of their hashes. Two sums of the same rows are equal in any order."""

    def __init__(self, passed: Callable[[int], object] = lambda rows: None) -> None:
        self._passed = passed
        self.rows = 0
        self._sum = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSum) and (self.rows, self._sum) == (other.rows, other._sum)

    def counting(self, batches: Iterable[list[Row]]) -> Iterator[list[Row]]:
        """Return the same batches of rows, and count their rows as they are consumed."""
        for rows in batches:
            for row in rows:
                digest = blake2b(repr(row).encode(errors="surrogatepass"), digest_size=_BITS // 8).digest()
                self._sum = (self._sum + int.from_bytes(digest, "big")) % (1 << _BITS)
            self.rows += len(rows)
            self._passed(len(rows))
            yield rows


def copy_database(
    source: Store, target: Store, advance: Callable[[int, int], object] = lambda done, total: None
) -> dict[str, int]:
    """Copy everything that is committed at this moment; a host that runs on the source may go on.

    Args:
        source: the database to copy; nothing in it is changed.
        target: a database without any table.
        advance: gets the numbers of rows that were copied, or compared after that, and of all rows.

    Returns:
        How many rows each table got.

    Raises:
        StoreUnusable: the source is empty, older or newer than this program, or not ours; or the target is not empty.
        StoreError: an error of either database. The target is then as empty as before.
    """
    require_schema(source)
    if (version := schema_version(source)) != newest():
        raise StoreUnusable(
            f"Database {source.location} has version {version}, this ikigai knows {newest()}: copy it with the newer "
            "ikigai, which knows all of its tables."
        )
    schema_version(target)  # tables of somebody else's have an error of their own
    return source.read(
        lambda reading: target.write(lambda writing: _copy(reading.schema, writing, target.location, advance))
    )


def _copy(
    reading: SchemaTransaction, transaction: Transaction, location: str, advance: Callable[[int, int], object]
) -> dict[str, int]:
    columns = {table: reading.columns(table) for table in reading.tables()}
    writing = transaction.schema
    if writing.tables():
        raise StoreUnusable(f"Database {location} is not empty: nothing was copied. Name one that is.")
    create_schema(transaction, location)
    _refuse_others({table: writing.columns(table) for table in writing.tables()}, columns, location)
    total = 2 * sum(int(reading.execute(f"SELECT count(*) FROM {table}")[0][0]) for table in columns)
    done = 0

    def passed(rows: int) -> None:
        nonlocal done
        done += rows
        advance(done, total)

    tallies: dict[str, TableSum] = {}
    for table in tables_in_order(columns):
        writing.execute(f"DELETE FROM {table}")  # what a new schema comes with
        tallies[table] = TableSum(passed)
        writing.load(table, columns[table], tallies[table].counting(reading.scan(table, columns[table])))
    for table, tally in tallies.items():
        if _tally(writing, table, columns[table], passed) != tally:
            raise StoreError(f"Database {location} gave back other rows of table {table} than it was given.")
    for host, *_ in transaction.run("open_hosts"):
        transaction.run("end_host", id=host)
    return {table: tally.rows for table, tally in tallies.items()}


def tables_in_order(names: Iterable[str]) -> list[str]:
    """Return tables in an order in which their rows can be inserted: referenced tables first."""
    return sorted(names, key=lambda name: (name not in _FIRST, name))


def _tally(schema: SchemaTransaction, table: str, columns: Sequence[str], passed: Callable[[int], object]) -> TableSum:
    tally = TableSum(passed)
    for _ in tally.counting(schema.scan(table, columns)):
        pass
    return tally


def _refuse_others(known: Columns, columns: Columns, location: str) -> None:
    """Raise `StoreUnusable` for tables or columns that this program does not know, since their data would be lost."""
    if others := sorted(set(columns) - set(known)):
        raise StoreUnusable(
            f"The source has a table {others[0]!r} that is not ikigai's: nothing was copied to {location}. "
            "Move it elsewhere first."
        )
    for table, names in columns.items():
        if names != known[table]:
            raise StoreUnusable(f"Table {table!r} of the source has other columns than ikigai's: nothing was copied.")
