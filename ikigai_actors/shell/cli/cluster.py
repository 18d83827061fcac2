"""The commands ``ikigai cluster …``: hosts on a cluster of Ray."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ikigai_actors.shell.cli import program_log
from ikigai_actors.verbs.opening import Options
from ikigai_actors.verbs.text.harmless import as_json, harmless

if TYPE_CHECKING:
    from ikigai_actors.cluster import FleetHost


@click.group()
def cluster() -> None:
    """Run the agents on a cluster of Ray, which places hosts and starts them again.

    The database is PostgreSQL: give --database before the command, or set IKIGAI_DATABASE_URL. Needs: pip install
    'ikigai-actors[ray]'.
    """


def _on_ray(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--address",
        metavar="ADDRESS",
        help="Of the cluster.  [default: $RAY_ADDRESS, else a Ray of ours on this machine]",
    )(command)


_timeout = click.option(
    "--timeout", metavar="SECONDS", type=click.FloatRange(0), default=120.0, show_default=True, help="Wait no longer."
)


@cluster.command()
@click.option("--hosts", metavar="N", type=click.IntRange(1), default=3, show_default=True, help="How many.")
@click.option("--app", metavar="MODULE:FUNCTION", required=True, help="As for ikigai host; the same on every node.")
@click.option("--cpus", metavar="N", type=click.FloatRange(0), help="Set aside for each.  [default: 1; 0 on ours]")
@_timeout
@_on_ray
@click.pass_obj
def up(options: Options, hosts: int, app: str, cpus: float | None, timeout: float, address: str | None) -> None:
    """Start hosts, as many as are missing, and wait until they run the agents."""
    from ikigai_actors.cluster import start

    fleet = start(options.database, hosts, app=app, address=address, cpus=cpus, timeout=timeout, on_wait=_tell)
    _show(fleet.hosts())


@cluster.command()
@click.option("--json", "json", is_flag=True, help="As a JSON list.")
@_on_ray
@click.pass_obj
def status(options: Options, json: bool, address: str | None) -> None:
    """Show the hosts, with the build, the machine and the latest log line of each."""
    from ikigai_actors.cluster import find_fleet

    hosts = find_fleet(options.database, address).hosts()
    if json:
        from ikigai_actors.frozen import as_dict

        click.echo(as_json([as_dict(host) for host in hosts], indent=2))
    else:
        _show(hosts)


@cluster.command()
@click.argument("hosts", metavar="N", type=click.IntRange(1))
@_timeout
@_on_ray
@click.pass_obj
def scale(options: Options, hosts: int, timeout: float, address: str | None) -> None:
    """Start or end hosts until there are N. A host that ends gives its agents to the others first."""
    from ikigai_actors.cluster import find_fleet

    fleet = find_fleet(options.database, address)
    fleet.scale(hosts, timeout, _tell)
    _show(fleet.hosts())


@cluster.command()
@click.argument("name")
@_on_ray
@click.pass_obj
def drain(options: Options, name: str, address: str | None) -> None:
    """Let a host give its agents to the others, and end it: before work on its machine, for one."""
    from ikigai_actors.cluster import find_fleet

    fleet = find_fleet(options.database, address)
    fleet.drain(name, _tell)
    _show(fleet.hosts())


@cluster.command()
@_on_ray
@click.pass_obj
def down(options: Options, address: str | None) -> None:
    """End all hosts. The agents rest in the database; any host goes on with them."""
    from ikigai_actors.cluster import find_fleet

    fleet = find_fleet(options.database, address)
    fleet.stop(_tell)
    click.echo(harmless(f"no hosts of {fleet.location} are left on this Ray"))


def _tell(line: str) -> None:
    program_log.announce(line)


def _show(hosts: "list[FleetHost]") -> None:
    click.echo("\n".join(_lines(hosts)))


def _lines(hosts: "list[FleetHost]") -> Iterator[str]:
    width = max((len(host.name) for host in hosts), default=0)
    for host in hosts:
        agents = f"{host.agents} agent" + ("s" if host.agents != 1 else "")
        where = f"{host.node}, pid {host.pid}" if host.pid is not None else "nowhere"
        state = f"runs {agents}" if host.state == "runs" else host.state
        said = f": {host.said}" if host.state in ("failed", "starts", "replaced") and host.said else ""
        yield harmless(f"{host.name.ljust(width)}  {where}  {state}{said}")
