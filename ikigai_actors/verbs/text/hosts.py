"""The hosts of a database as text: a list, and notices when hosts come and go. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from ikigai_actors.agent.subscriptions import HostChanged, HostEnded, HostsDiffer
from ikigai_actors.store.hosts.rows import HostRecord, Vacant
from ikigai_actors.tools.definitions import ToolDifference
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.words import counted, duration

MOST_HEIRS = 5
"""The most living hosts that are named when a host is gone."""

MOST_TOOLS = 10
"""The most tools that are named when hosts differ."""


def host_lines(
    hosts: Sequence[HostRecord], vacant: Vacant, differences: Sequence[ToolDifference] = ()
) -> Iterator[str]:
    """Return a line for each host, and lines about agents without a host and tools that differ, if there are any.

    Args:
        hosts: the living hosts, and those that ended recently.
        vacant: the agents that no host runs.
        differences: the tools in which living hosts differ.
    """
    rows = [
        (
            host.name or "-",
            f"{host.hostname}, pid {host.pid}",
            f"since {_time(host.started_at)}",
            _state(host),
        )
        for host in hosts
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
    for row in rows:
        yield "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3]])
    if not any(host.state in ("runs", "drains") for host in hosts):
        yield "no process runs these agents"
    elif vacant.shards:
        yield f"nobody runs {counted(vacant.agents, 'agent')} yet, in {counted(vacant.shards, 'vacant shard')}"
    if differences:
        yield f"hosts have different tools: {_differing(differences)}"


def host_changed(event: HostChanged) -> str:
    """Return the line about the host that runs the agents from now on."""
    if event.host is not None:
        return f"These agents are run by {one_line(event.host)} now."
    former = f" ({one_line(event.former)})" if event.former else ""
    return (
        f"The process that ran these agents is gone{former}, and they have stopped. Leave, and start ikigai to run "
        "them. What you send meanwhile waits in the database."
    )


def host_ended(event: HostEnded) -> str:
    """Return the line about a host that is gone, whose agents others take over."""
    name, heirs = one_line(event.host), [one_line(heir) for heir in event.heirs]
    gone = f"Host {name} is gone" if event.host not in event.heirs else f"Host {name} was restarted"
    if not event.agents:
        return f"{gone}: it ran no agents."
    where = f"{len(heirs)} hosts" if len(heirs) > MOST_HEIRS else enumerated(heirs)
    who = "its agent goes" if event.agents == 1 else f"its {event.agents} agents go"
    return f"{gone}: {who} on at {where}."


def hosts_differ(event: HostsDiffer) -> str:
    """Return the line about tools that differ between hosts."""
    if not event.tools:
        return "All hosts have the same tools again."
    return f"Hosts have different tools: {_differing(event.tools)}. ikigai hosts shows their builds."


def _differing(differences: Sequence[ToolDifference]) -> str:
    """Return the differing tools as text: ``price (description, policy), refund (not at a and b)``."""
    more = [f"{len(differences) - MOST_TOOLS} more"] if len(differences) > MOST_TOOLS else []
    return ", ".join([*(_difference(difference) for difference in differences[:MOST_TOOLS]), *more])


def _difference(difference: ToolDifference) -> str:
    without = [f"not at {enumerated([one_line(host) for host in difference.without])}"] if difference.without else []
    return f"{one_line(difference.tool)} ({', '.join([*difference.traits, *without])})"


def enumerated(names: Sequence[str]) -> str:
    """Return names as one text: ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _state(host: HostRecord) -> str:
    if host.ended_at is not None:
        return f"ended {_time(host.ended_at)}"
    agents = [counted(host.agents, "agent")]
    if host.working:
        agents.append(f"{host.working} working")
    if host.name is not None:  # one without a name has all shards
        agents.append(counted(host.shards, "shard"))
        agents += [f"build {host.build}"] if host.build else []
    share = ", ".join(agents)
    seen = "" if host.age is None else f", seen {duration(host.age / 1000)} ago"
    if host.silent:
        return f"sends no heartbeat: {share}{seen}"
    if host.draining:
        return f"gives its agents away: {share} left{seen}"
    return f"runs {share}{seen}"


def _time(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000).strftime("%Y-%m-%d %H:%M:%S")
