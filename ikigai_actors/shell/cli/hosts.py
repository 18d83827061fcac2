"""The hosts of a database, as lines and as JSON."""

from collections.abc import Iterator
from datetime import datetime

from ikigai_actors.frozen import as_dict
from ikigai_actors.records.hosts import HostRecord
from ikigai_actors.shell.line.output import as_json, harmless
from ikigai_actors.system.attached.client import Client

_STATES = {
    "waits": "waits for its turn",
    "silent": "gives no sign of life",
    "ended": "ended",
}


def look(database: str | None) -> list[HostRecord]:
    """Read the hosts that live, or have ended within the last hour. Raises what `Client.open` does."""
    with Client.open(database) as client:
        return client.hosts()


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
    if not any(host.state == "runs" for host in hosts):
        yield "no process runs these agents"


def as_objects(hosts: list[HostRecord]) -> str:
    """The same as a JSON list."""
    return as_json([{**as_dict(host), "state": host.state} for host in hosts], indent=2)


def _state(host: HostRecord) -> str:
    if host.state == "runs":
        return f"runs {host.agents} agent" + ("s" if host.agents != 1 else "")
    return _STATES[host.state]


def _time(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000).strftime("%Y-%m-%d %H:%M:%S")
