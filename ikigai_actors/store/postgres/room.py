"""What a host needs of a server: connections of its own, and enough of them. Asked when a host begins."""

import logging

from ikigai_actors.errors import StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.store.postgres.transaction import PostgresTransaction

logger = logging.getLogger(__name__)

HOST_CONNECTIONS = 9
"""The most connections that a host holds at once: writer, bell, lease, two watches and four readers."""

_LIMITS = """
    WITH taken AS (SELECT usename, datname FROM pg_stat_activity WHERE backend_type = 'client backend')
    SELECT 'role ' || rolname, rolconnlimit, 'ALTER ROLE ' || rolname || ' CONNECTION LIMIT n',
           (SELECT COUNT(*) FROM taken WHERE usename = session_user)
      FROM pg_roles WHERE rolname = session_user AND rolconnlimit >= 0 AND NOT rolsuper
    UNION ALL
    SELECT 'database ' || datname, datconnlimit, 'ALTER DATABASE ' || datname || ' CONNECTION LIMIT n',
           (SELECT COUNT(*) FROM taken WHERE datname = current_database())
      FROM pg_database WHERE datname = current_database() AND datconnlimit >= 0
       AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)
    UNION ALL
    SELECT 'the server', current_setting('max_connections')::bigint
           - CASE WHEN rolsuper THEN 0 ELSE current_setting('superuser_reserved_connections')::bigint
           + COALESCE(current_setting('reserved_connections', true), '0')::bigint END,
           'max_connections', (SELECT COUNT(*) FROM taken)
      FROM pg_roles WHERE rolname = session_user
"""
"""Each limit of connections that holds for this user: whose it is, the number, how to raise it, and those in use."""

_LOOKS = 3
"""How often it is looked whether a connection keeps its server process."""


def check_room(store: Store, held: int) -> None:
    """Refuse a server that gives fewer connections than a host needs.

    Args:
        store: by which the server is asked.
        held: how many connections this process has already.

    Raises:
        StoreUnusable: a limit is too low.
        StoreUnavailable: too many of them are in use at the moment.
    """
    try:
        limits = store.write(lambda tx: _rows(tx, _LIMITS))
    except StoreUnavailable:
        raise
    except StoreError as error:  # a server of another make
        logger.info("The limits of connections could not be asked for: %s", error)
        return
    for whose, limit, remedy, taken in limits:
        if limit - taken >= HOST_CONNECTIONS - held:
            continue
        told = (
            f"Database {store.location}: a host needs {HOST_CONNECTIONS} connections, and {whose} has {limit}, of "
            f"which {taken - held} are in use by others."
        )
        if limit < HOST_CONNECTIONS:
            raise StoreUnusable(f"{told} Raise the limit ({remedy}).")
        raise StoreUnavailable(f"{told} Close some of those, or raise the limit ({remedy}).")


def check_own(store: Store, separate: Store) -> None:
    """Refuse a pooler that gives each transaction another server process. Raises `StoreUnusable`.

    There a lock of a session and a LISTEN would be of whoever comes next.

    Args:
        store: a connection.
        separate: another one, which is to have a server process of its own.
    """
    own = separate.read(_process)
    for _ in range(_LOOKS):
        if store.write(_process) == own or separate.read(_process) != own:
            raise StoreUnusable(
                f"Database {store.location} is reached through a pooler that gives each transaction another connection "
                "(PgBouncer: pool_mode = transaction). A host needs connections of its own: connect to the server "
                "itself, or by a pool in session mode."
            )


def _process(tx: Transaction) -> int:
    [(pid,)] = _rows(tx, "SELECT pg_backend_pid()")
    return int(pid)


def _rows(tx: Transaction, statement: str) -> list[Row]:
    assert isinstance(tx, PostgresTransaction)
    return tx.execute(statement)
