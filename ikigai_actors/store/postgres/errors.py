"""Translates PostgreSQL's errors into ours by their SQLSTATE, or by the text of a refused connection, which has none.

Texts that come from the server or its client are searched for the URL's passwords before they are shown.
"""

import re

import psycopg

from ikigai_actors.errors import CommitUnknown, StoreConflict, StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store.base import Blocked
from ikigai_actors.store.location import mask, secrets
from ikigai_actors.store.postgres.connecting import UNANSWERED


class Again(StoreUnavailable):
    """The error of a transaction that the server asks to run again: a deadlock, or a serialization failure."""


class ReadOnly(StoreUnavailable):
    """The error of a server that takes no writes, as during a failover.

    This connection may never reach the new server.
    """


_USER = "it does not let this user in. Check user and password"
_NAME = "there is no such database. Make it (createdb), or name another"
_RIGHTS = (
    "this user lacks a right. The owner of the tables gives it (GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN "
    "SCHEMA public TO name), or name another user"
)
_ENTRY = "this user may not enter it. GRANT CONNECT ON DATABASE, or name another user"
_FULL = "it gives no more connections. Close some, or raise max_connections, or the limit of the role or database"
_POOL = (
    "its pooler had no connection to give: the pool is used up, or the pooler does not reach the server. A host takes "
    "up to 8 connections, an attached program up to 6: raise the limit (PgBouncer: default_pool_size, max_client_conn)"
)
_READ_ONLY = (
    "it is read-only, as a standby is, or a server from which another takes over. Name the primary server, or all of "
    "them: postgresql://one,two/name?target_session_attrs=read-write"
)
_STATEMENTS = (
    "it is reached through a pooler that takes statements one by one, and no transactions (PgBouncer: pool_mode = "
    "statement). Connect to the server itself, or by a pool in session mode"
)
_URL = "the URL cannot be understood. Write postgresql://user:password@host:5432/name, odd characters as %40"

_STATES: tuple[tuple[str, type[StoreError], str], ...] = (
    ("40003", CommitUnknown, "it is not known whether the transaction was committed"),
    ("08P01 .*statement pooling", StoreUnusable, _STATEMENTS),
    ("08P01 .*(query_wait_timeout|no more connections)", StoreUnavailable, _POOL),
    ("40", Again, "transactions kept blocking one another. Try again"),
    ("55P03", Blocked, "another transaction has a lock for too long. Try again"),
    ("08|57P|57014|25P03|58", StoreUnavailable, "it ended the connection or the statement. Try again"),
    ("53100", StoreUnavailable, "its disk is full. Free some space"),
    ("53300", StoreUnavailable, _FULL),
    ("53", StoreUnavailable, "it is short of something. Try again"),
    ("23", StoreConflict, "a constraint refused the rows"),
    ("42P06|42P07|42710", StoreConflict, "what was to be made is there already"),
    ("28", StoreUnusable, _USER),
    ("3D000", StoreUnusable, _NAME),
    ("3F000", StoreUnusable, "there is no such schema. Make it, or change search_path"),
    ("42501", StoreUnusable, _RIGHTS),
    ("25006", ReadOnly, _READ_ONLY),
    ("XX001|XX002", StoreUnusable, "it is damaged. Restore a copy"),
)
"""The error for an SQLSTATE with this beginning, and its text. The first entry that fits counts."""

_TEXTS: tuple[tuple[str, type[StoreError], str], ...] = (
    ("authentication failed|no password supplied|pg_hba.conf|not permitted to log in", StoreUnusable, _USER),
    ("role .* does not exist|certificate|does not support SSL|user name specified", StoreUnusable, _USER),
    ("database .* does not exist", StoreUnusable, _NAME),
    ("permission denied for database", StoreUnusable, _ENTRY),
    ("invalid .*(option|value|port)", StoreUnusable, _URL),
    ("query_wait_timeout|no more connections allowed", StoreUnavailable, _POOL),
    (UNANSWERED, StoreUnavailable, "it does not answer, or a pooler before it has no connection left. Check both"),
    ("session is read-only|in hot standby mode", ReadOnly, _READ_ONLY),
    ("starting up|shutting down|recovery mode|not yet accepting", StoreUnavailable, "it starts or stops. Try again"),
    ("too many (clients|connections)|connection slots", StoreUnavailable, _FULL),
    ("host name", StoreUnavailable, "its host is not known. Check the name and the network"),
    ("", StoreUnavailable, "it does not answer. Check that it runs, and host and port"),
)
"""The error for a message text without an SQLSTATE. The first entry that fits counts."""


class PostgresErrors:
    """Translates psycopg's errors; the only place that distinguishes them. Hides the passwords of the URL."""

    def __init__(self, url: str) -> None:
        self.shown = mask(url)
        """The URL without its password."""
        self._secrets = secrets(url)

    def ours(self, error: Exception) -> StoreError:
        """Return the `StoreError` for an error of psycopg."""
        state = getattr(error, "sqlstate", None)
        if state is not None:
            rules, fits, subject = _STATES, re.match, f"{state} {error}"
        elif isinstance(error, psycopg.OperationalError):
            rules, fits, subject = _TEXTS, re.search, str(error)
        else:
            return self.error(StoreError, "it cannot do that", error)
        for pattern, kind, meaning in rules:
            if fits(pattern, subject):
                return self.error(kind, meaning, error)
        return self.error(StoreError, "it refused", error)

    def bad_url(self, error: Exception) -> StoreError:
        """Return our error for a URL that psycopg cannot read."""
        return self.error(StoreUnusable, _URL, error)

    def cause(self, error: Exception) -> Exception | None:
        """Return the driver's error as the cause of ours; None if its text contains a password."""
        return error if self._hide(str(error)) == str(error) else None

    def error(self, kind: type[StoreError], meaning: str, error: Exception) -> StoreError:
        """Return an error of this package that says what is wrong with this database, and quotes the driver."""
        return kind(f"Database {self.shown}: {meaning}. ({type(error).__name__}: {self._hide(str(error).strip())})")

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


OLDEST = 14
"""The oldest major version that is supported."""


def refuse_encoding(encoding: str | None, shown: str) -> None:
    """Raise `StoreUnusable` when the database cannot hold every text.

    The encoding is None if a pooler does not report it.

    A database in SQL_ASCII accepts any bytes, but counts bytes where we count characters. Searches then miss texts, and
    other programs may write bytes that cannot be decoded.
    """
    if encoding not in (None, "UTF8"):
        raise StoreUnusable(
            f"Database {shown} has the encoding {encoding}, and texts need UTF8. Make another one: createdb -E UTF8 "
            "-T template0 name. What an older ikigai has written goes there by pg_dump and psql."
        )


def refuse_old(version: int, shown: str) -> None:
    """Raise `StoreUnusable` when the server is too old.

    ``version`` is a number as psycopg reports it: 140005 for 14.5.
    """
    if version < OLDEST * 10_000:
        raise StoreUnusable(f"Database {shown} runs PostgreSQL {version // 10_000}; {OLDEST} or newer is needed.")
