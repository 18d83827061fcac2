"""The hosts of a database, as lines and as JSON."""

from collections.abc import Iterator
from datetime import datetime
from time import monotonic

from ikigai_actors.frozen import as_dict
from ikigai_actors.records.hosts import HostRecord
from ikigai_actors.shell.line.output import as_json, harmless
from ikigai_actors.system.attached.client import Client

_STATES = {
    "silent": "gives no sign of life",
    "ended": "ended",
}


def look(database: str | None) -> list[HostRecord]:
    """Read the hosts that live, or have ended within the last hour. Raises what `Client.open` does."""
    with Client.open(database) as client:
        return client.hosts()


def drain(database: str | None, host: str, timeout: float) -> int:
    """Have a host give its agents away, and wait for that; return how many it still has after so many seconds.

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


def as_lines(hosts: list[HostRecord]) -> Iterator[str]:
    """A line for each host, and one that says so when nobody runs the agents."""
    rows = [
        (
            host.name or "-",
            f"{host.hostname}, pid {host.pid}",
            f"since {_time(host.started_at)}",
            _state(host) + (f" {_time(host.ended_at)}" if host.ended_at is not None else ""),
        )
        for host in hosts
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
    for row in rows:
        yield harmless("  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3]]))
    if not any(host.state in ("runs", "drains") for host in hosts):
        yield "no process runs these agents"


def as_objects(hosts: list[HostRecord]) -> str:
    """The same as a JSON list."""
    return as_json([{**as_dict(host), "state": host.state} for host in hosts], indent=2)


def _state(host: HostRecord) -> str:
    agents = f"{host.agents} agent" + ("s" if host.agents != 1 else "")
    if host.state == "runs":
        return f"runs {agents}"
    if host.state == "drains":
        return f"gives its agents away: {agents} left"
    return _STATES[host.state]


def _time(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000).strftime("%Y-%m-%d %H:%M:%S")
