"""``ikigai trace``: the turns of agents as spans of OpenTelemetry, to a collector or into a file."""

import os
from typing import Any

import click

from ikigai_actors.shell.cli.exit_status import ended_early
from ikigai_actors.verbs.text.harmless import harmless


@click.group()
def trace() -> None:
    """Give the turns of agents to tools for traces, such as Phoenix, Jaeger, Grafana and Logfire."""


@trace.command()
@click.argument("agents", metavar="[AGENT]...", nargs=-1)
@click.option("--to", "target", metavar="URL|FILE", help="A collector, or a new file.  [$OTEL_EXPORTER_OTLP_ENDPOINT]")
@click.option("--since", metavar="TIME", help="Turns that ended since then, as 2h, or 2026-11-26T08:00+00:00.")
@click.option("--until", metavar="TIME", help="Turns that ended before then.")
@click.option("--content", is_flag=True, help="Also the texts of prompts, replies, arguments and results.")
@click.option("--join", is_flag=True, help="Show the first turn of a child within the turn in which it was forked.")
@click.option(
    "--usage",
    type=click.Choice(["both", "chat"]),
    default="both",
    help="Which spans have tokens: turns and requests, or requests alone, for tools that add them up.  [default: both]",
)
@click.option("--header", "headers", metavar="NAME=VALUE", multiple=True, help="For a collector.  Repeatable.")
@click.option(
    "--format", "form", type=click.Choice(["protobuf", "json"]), help="[default: protobuf; json in a file, and alone]"
)
@click.pass_context
def export(
    context: click.Context,
    /,
    target: str | None,
    headers: tuple[str, ...],
    form: str | None,
    **wanted: Any,
) -> None:
    """Send the turns that have ended as spans: of all agents, or of each AGENT and all below it.

    A turn is a trace with its requests and calls; forks, mails and merges are links. Works beside a running shell or
    without one. The ids come from the database: the same turn sent again is the same spans. Texts stay here without
    --content. Put keys into OTEL_EXPORTER_OTLP_HEADERS, where no list of processes shows them.
    """
    from ikigai_actors.shell.cli import tracing

    with ended_early(context):
        line = tracing.export_traces(
            context.obj.database,
            tracing.Wanted(**wanted),
            target,
            headers=headers,
            form=form,
            environment=os.environ,
        )
    click.echo(harmless(line))
