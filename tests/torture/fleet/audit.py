"""An audit of writers: a trigger notes, as each message is committed, which host writes and who may."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import psycopg

from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.postgres.transaction import HOST_NAME
from tests.kit.databases import sql

_TRIGGER = f"""
    CREATE TABLE audit (
        agent TEXT NOT NULL, message BIGINT NOT NULL, writer TEXT NOT NULL, shard BIGINT NOT NULL,
        epoch BIGINT NOT NULL, owner TEXT, ended BOOLEAN NOT NULL
    );
    CREATE FUNCTION audit_message() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO audit
                SELECT a.uuid, NEW.id, current_setting('application_name'), s.id, s.epoch,
                       {HOST_NAME.format("")!r} || s.host, h.ended_at IS NOT NULL
                  FROM agents a JOIN shards s ON s.id = a.shard LEFT JOIN hosts h ON h.id = s.host
                 WHERE a.uuid = NEW.agent_uuid;
            RETURN NULL;
        END
    $$;
    CREATE CONSTRAINT TRIGGER audit_message AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION audit_message();
"""
"""It runs within COMMIT, behind the fence: what it reads cannot change any more before the message is there."""


class Audited(NamedTuple):
    """A message, by whom it was written, and who had the agent when it was committed."""

    agent: str
    message: int
    writer: str
    """What its connection said of itself."""
    shard: int
    epoch: int
    owner: str | None
    """What the connections say of themselves of the host that had the shard."""
    ended: bool
    """Whether that host had ended."""


def audit(connection: "psycopg.Connection[Row]") -> None:
    """Have each message from now on audited, in a database with its tables."""
    connection.execute(_TRIGGER.encode())


def audited(tx: Transaction) -> list[Audited]:
    """Every message that was audited, in the order of the commits within a shard."""
    return [Audited(*row) for row in sql(tx, "SELECT * FROM audit ORDER BY shard, epoch, agent, message")]


def second_writers(audited: Iterable[Audited]) -> Iterator[str]:
    """Who wrote that had not the shard, or not any more; and two that wrote in one epoch of a shard."""
    writers: dict[tuple[int, int], str] = {}
    for row in audited:
        if row.writer != row.owner or row.ended:
            ended = ", which had ended" if row.ended else ""
            yield f"writer: {row.writer} wrote {row.message} of {row.agent}, which was {row.owner}'s{ended}"
        if (writer := writers.setdefault((row.shard, row.epoch), row.writer)) != row.writer:
            yield f"writer: {writer} and {row.writer} have both written in epoch {row.epoch} of shard {row.shard}"
