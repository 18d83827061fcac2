"""``ikigai api``: the network API of a database, until a signal ends it. The work is in `ikigai_actors.doors.api`."""

import click

from ikigai_actors.shell.cli import program_log


@click.command("api")
@click.option("--listen", metavar="HOST:PORT", default="127.0.0.1:8080", show_default=True, help="Port 0: a free one.")
@click.option("--url", metavar="URL", default="", help="Its address for clients: https://agents.example.com.")
@click.option("--root-path", metavar="PATH", default="", help="The path that a proxy cuts off, as /agents.")
@click.option(
    "--trust-proxy",
    "trusted",
    metavar="NETWORK",
    multiple=True,
    help="A proxy whose X-Forwarded-For counts, as 10.0.0.0/8.  Repeatable.",
)
@click.option("--under", metavar="AGENT", help="Only this agent and those below it can be reached.")
@click.option(
    "--key",
    "keys",
    metavar="REF",
    multiple=True,
    help="The operator's key, env:, file: or keyring:NAME, for links and accounts.  [default: $IKIGAI_KEYS]",
)
@click.option(
    "--allow-private",
    "allowed",
    metavar="CIDR",
    multiple=True,
    help="Reach this network for accounts as well, also without TLS.  [default: $IKIGAI_ALLOW_PRIVATE]",
)
@click.pass_context
def network_api(
    context: click.Context,
    listen: str,
    url: str,
    root_path: str,
    trusted: tuple[str, ...],
    under: str | None,
    keys: tuple[str, ...],
    allowed: tuple[str, ...],
) -> None:
    """Serve the agents to programs elsewhere, by HTTP with tokens.

    Prints the address. ikigai token create gives a program its token; /openapi.json lists the requests. The API runs no
    agents: start a host before or after it. Other machines connect by a proxy with TLS, which --trust-proxy names. Ends
    by SIGTERM or Ctrl-C, when the requests under way are done.
    """
    from ikigai_actors.doors.api.serving import ApiOptions, serve_api

    options = ApiOptions(context.obj.database, listen, url, root_path, trusted, under, keys, allowed)
    context.exit(serve_api(options, click.echo, program_log.announce))
