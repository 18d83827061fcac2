"""The command ``ikigai drain``, which makes a host of a database give its agents away."""

from time import monotonic

from ikigai_actors.reach.following import commits_of
from ikigai_actors.system.remote.client import Client


def drain(database: str | None, host: str, timeout: float) -> int:
    """Make a host give its agents away, and wait ``timeout`` seconds; return the number of agents still there.

    Raises `NoHost`, and the errors of `Client.open`.
    """
    with Client.open(database) as client:
        drained = client.drain(host)
        until = monotonic() + timeout
        with commits_of(client, []) as feed:
            while True:
                left = next(
                    (record for record in client.hosts() if record.id == drained.id and record.ended_at is None), None
                )
                if left is None or not left.shards:
                    return 0
                if (seconds := until - monotonic()) <= 0:
                    return left.agents
                feed.wait(min(1.0, seconds))
