"""The connections that a program needs on a server, and the check that a host gets enough of them."""

import logging
from typing import NamedTuple

from ikigai_actors.errors import StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.postgres.readers import MOST_READERS
from ikigai_actors.store.postgres.transaction import HOST_NAME

logger = logging.getLogger(__name__)

HOST_CONNECTIONS = 4 + MOST_READERS
"""The most connections that a host holds at once: writer, bell, lease, watch and the readers."""

CLIENT_CONNECTIONS = 2 + MOST_READERS
"""The most connections that an attached program holds: writer, watch and the readers."""

_LIMITS = f"""
    WITH called AS (
        SELECT usename, datname, application_name AS name, COUNT(*) AS made FROM pg_stat_activity
         WHERE datname IS NOT NULL AND usesysid IS NOT NULL
           AND COALESCE(backend_type, 'client backend') = 'client backend'
         GROUP BY usename, datname, application_name
    ), taken AS (
        SELECT usename, datname, CASE WHEN name ~ '{HOST_NAME.format("[[:alnum:]_-]{22}")}$'
               THEN GREATEST(made, {HOST_CONNECTIONS}) ELSE made END AS number
          FROM called WHERE name <> current_setting('application_name')
    )
    SELECT 'role ' || rolname, rolconnlimit, 'ALTER ROLE ' || rolname || ' CONNECTION LIMIT n',
           (SELECT SUM(number) FROM taken WHERE usename = session_user)
      FROM pg_roles WHERE rolname = session_user AND rolconnlimit >= 0 AND NOT rolsuper
    UNION ALL
    SELECT 'database ' || datname, datconnlimit, 'ALTER DATABASE ' || datname || ' CONNECTION LIMIT n',
           (SELECT SUM(number) FROM taken WHERE datname = current_database())
      FROM pg_database WHERE datname = current_database() AND datconnlimit >= 0
       AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)
    UNION ALL
    SELECT 'the server', current_setting('max_connections')::bigint
           - CASE WHEN rolsuper THEN 0 ELSE current_setting('superuser_reserved_connections')::bigint
           + COALESCE(current_setting('reserved_connections', true), '0')::bigint END,
           'max_connections', (SELECT SUM(number) FROM taken)
      FROM pg_roles WHERE rolname = session_user
"""
"""Reads each limit of connections that applies to this user: whose it is, the number, how to raise it, and how many
connections of other application names count against it. A host counts with all connections that it may need, even those
that it has not opened yet. Of other users only a part is shown, and connections of the server itself have no
database."""

_LOOKS = 3
"""The number of checks whether a pooler gives each transaction another server process."""


class Limit(NamedTuple):
    """A limit on connections."""

    whose: str
    most: int
    remedy: str
    """How an administrator raises the limit."""
    others: int
    """The number of connections that others take, counting for each host the most that it may need."""


def limits(tx: Transaction) -> list[Limit]:
    """Return the connection limits for this user. Raises `StoreError` on a server that is not PostgreSQL."""
    return [Limit(whose, most, remedy, int(others or 0)) for whose, most, remedy, others in tx.schema.execute(_LIMITS)]


def check_limits(store: Store) -> None:
    """Refuse a server that gives fewer connections than a host needs in addition to the others.

    Call this after the host's connections have got its name. Two hosts that start at once then count each other.

    Args:
        store: the store through which the server is asked.

    Raises:
        StoreUnusable: a limit is too low.
        StoreUnavailable: too many connections are in use at the moment, or will be.
    """
    try:
        rows = store.write(limits)  # by that connection: it has the name of the host from now on
    except StoreUnavailable:
        raise
    except StoreError as error:  # a server of another make
        logger.info("The limits of connections could not be asked for: %s", error)
        return
    for whose, most, remedy, others in rows:
        if most - others >= HOST_CONNECTIONS:
            continue
        text = (
            f"Database {store.location}: a host needs {HOST_CONNECTIONS} connections, and {whose} has {most}, of "
            f"which {others} are in use by others or kept for their hosts."
        )
        if most < HOST_CONNECTIONS:
            raise StoreUnusable(f"{text} Raise the limit ({remedy}).")
        raise StoreUnavailable(f"{text} Close some of those, or raise the limit ({remedy}).")


def check_own(store: Store, separate: Store) -> None:
    """Refuse a pooler that gives each transaction another server process. Raises `StoreUnusable`.

    The next client of such a pooler would inherit this process's settings, session locks and LISTENs.

    Args:
        store: the store whose connection for writes is checked.
        separate: a store whose connection for reads must have another server process.
    """
    own = separate.read(process)
    for _ in range(_LOOKS):
        if store.write(process) == own or separate.read(process) != own:
            raise StoreUnusable(
                f"Database {store.location} is reached through a pooler that gives each transaction another connection "
                "(PgBouncer: pool_mode = transaction). ikigai needs connections of its own: connect to the server "
                "itself, or by a pool in session mode."
            )


def process(tx: Transaction) -> int:
    """Return the id of the server process that carries out a transaction."""
    [(pid,)] = tx.schema.execute("SELECT pg_backend_pid()")
    return int(pid)
