"""The hosts of a database, as JSON; and what is asked of them: to give their agents away, all or one."""

from time import monotonic

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.remote_commands import Move
from ikigai_actors.shell.text.harmless import as_json
from ikigai_actors.shell.text.rows import as_row
from ikigai_actors.store.hosts.rows import HostRecord, Vacant
from ikigai_actors.system.remote.client import Client

_INNER = {"lease_until", "now", "waits"}
"""What the row says to other hosts alone."""


def read_hosts(database: str | None) -> tuple[list[HostRecord], Vacant]:
    """Read the hosts that live, or have ended within the last hour, and what no host runs.

    Raises what `Client.open` does.
    """
    with Client.open(database) as client:
        return client.shares()


def drain(database: str | None, host: str, timeout: float) -> int:
    """Have a host give its agents away, and wait for that; return how many it still has after this many seconds.

    Raises `NoHost`, and what `Client.open` does.
    """
    with Client.open(database) as client:
        drained = client.drain(host)
        until = monotonic() + timeout
        with client.feed([]) as feed:
            while True:
                left = next((one for one in client.hosts() if one.id == drained.id and one.ended_at is None), None)
                if left is None or not left.shards:
                    return 0
                if (seconds := until - monotonic()) <= 0:
                    return left.agents
                feed.wait(min(1.0, seconds))


def move(database: str | None, agent: str, host: str, timeout: float) -> str:
    """Have an agent moved to a host by the one that runs it; return what a person calls the agent.

    When that has not happened after this many seconds, or nobody runs the agent, it does not happen later either.

    Raises what `AgentRef.move` and `Client.open` do.
    """
    with Client.open(database) as client:
        record = client.find(agent)
        late = f"{record.short} was not moved within {timeout:g} s, and is not moved later either. See: ikigai hosts"
        client.perform(record.uuid, Move(host, Future()), timeout, late)
    return record.short


def as_objects(hosts: list[HostRecord]) -> str:
    """The same as a JSON list."""
    shown = ({name: value for name, value in as_row(host).items() if name not in _INNER} for host in hosts)
    return as_json([{**one, "state": host.state} for one, host in zip(shown, hosts, strict=True)], indent=2)
