"""``ikigai doc``: the documents that all agents share, beside a running shell or without one."""

import io
import sys
from typing import TYPE_CHECKING, BinaryIO

import click

from ikigai_actors.shell.cli.options import Options
from ikigai_actors.shell.text.harmless import as_json, harmless
from ikigai_actors.shell.text.rows import as_row

if TYPE_CHECKING:
    from ikigai_actors.records.documents import DocumentVersion
    from ikigai_actors.system.remote.client import Client

_Expect = click.IntRange(min=0)
_AUTHOR = "The agent that writes; else a person outside of any agent."
_JSON = click.option("--json", "json", is_flag=True, help="As JSON.")


@click.group()
def doc() -> None:
    """List, show, write and delete the documents that all agents share.

    Reads and writes the database, beside a running shell or without one. Each write makes a version, and so does a
    deletion; versions stay readable.
    """


@doc.command("list")
@click.argument("prefix", default="")
@_JSON
@click.pass_obj
def list_documents(options: Options, prefix: str, json: bool) -> None:
    """List the documents whose paths begin with PREFIX."""
    with _opened(options) as client:
        _tell(client, client.documents.list(prefix), json, with_path=True)


@doc.command("show")
@click.argument("path")
@click.option("--version", metavar="N", type=click.IntRange(min=1), help="An earlier version.")
@_JSON
@click.pass_obj
def show(options: Options, path: str, version: int | None, json: bool) -> None:
    """Print a document: byte for byte into a pipe or file, harmless on a terminal."""
    with _opened(options) as client:
        found = client.documents.read(path, version)
    if json:
        click.echo(as_json(as_row(found)))
    elif sys.stdout.isatty():
        click.echo(harmless(found.body))
    else:
        click.echo(found.body.encode(), nl=False)


@doc.command("write")
@click.argument("path")
@click.argument("text", nargs=-1)
@click.option("--file", "file", type=click.File("rb"), help="Take the text from a file; - is standard input.")
@click.option("--expect", metavar="N", type=_Expect, help="Only if N is the latest version; 0: if there is none.")
@click.option("--as", "author", metavar="AGENT", help=_AUTHOR)
@click.pass_obj
def write(
    options: Options, path: str, text: tuple[str, ...], file: BinaryIO | None, expect: int | None, author: str | None
) -> None:
    """Write a document: TEXT, or a file. A TEXT of - is standard input, as --file - is."""
    from ikigai_actors.shell.text.decode import decoded

    if (not text) == (file is None):
        raise click.UsageError("Give either TEXT or --file.")
    if text == ("-",):
        file = io.BytesIO() if sys.stdin is None else sys.stdin.buffer
    body = decoded(file) if file is not None else " ".join(text)
    with _opened(options) as client:
        version = client.documents.write(path, body, author=author, expect=expect)
    click.echo(f"{path}: version {version}")


@doc.command("delete")
@click.argument("path")
@click.option("--expect", metavar="N", type=_Expect, help="Only if N is the latest version.")
@click.option("--as", "author", metavar="AGENT", help=_AUTHOR)
@click.pass_obj
def delete(options: Options, path: str, expect: int | None, author: str | None) -> None:
    """Delete a document; its versions stay readable."""
    with _opened(options) as client:
        version = client.documents.delete(path, author=author, expect=expect)
    click.echo(f"{path}: deleted in version {version}")


@doc.command("log")
@click.argument("path")
@_JSON
@click.pass_obj
def log(options: Options, path: str, json: bool) -> None:
    """List the versions of a document."""
    with _opened(options) as client:
        _tell(client, client.documents.log(path), json, with_path=False)


def _opened(options: Options) -> "Client":
    from ikigai_actors.system.remote.client import Client

    return Client.open(options.database)


def _tell(client: "Client", versions: "list[DocumentVersion]", json: bool, with_path: bool) -> None:
    if json:
        click.echo(as_json([as_row(version) for version in versions], indent=2))
        return
    authors = sorted({version.author for version in versions if version.author is not None})
    names = {record.uuid: record.short for record in client.get_all(authors)}
    for version in versions:
        told = version.to_person(names.get(version.author or ""))
        click.echo(harmless(f"{version.path}  {told}" if with_path else told))
