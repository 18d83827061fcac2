"""The slash commands about documents. A person writes as the current agent."""

import tempfile
from typing import BinaryIO

import click

from ikigai_actors.errors import DocumentNotFound, IkigaiError
from ikigai_actors.records.documents import DocumentVersion
from ikigai_actors.shell.text.decode import decoded
from ikigai_actors.shell.verbs.arguments import DOCUMENT, TEXT
from ikigai_actors.shell.verbs.place import ShellPlace
from ikigai_actors.text import storable

_Expect = click.IntRange(min=0)


@click.group("/doc", invoke_without_command=True)
@click.pass_context
def doc(ctx: click.Context) -> None:
    """Show and change the documents that all agents share.

    Without a command: list them. Each write makes a version, and so does a deletion; versions stay readable.
    """
    if ctx.invoked_subcommand is None:
        _list(ctx.obj, "")


@doc.command("list")
@click.argument("prefix", type=DOCUMENT, default="")
@click.pass_obj
def list_documents(shell: ShellPlace, prefix: str) -> None:
    """List the documents whose paths begin with PREFIX."""
    _list(shell, prefix)


@doc.command("show")
@click.argument("path", type=DOCUMENT)
@click.option("--version", metavar="N", type=click.IntRange(min=1), help="An earlier version.")
@click.pass_obj
def show(shell: ShellPlace, path: str, version: int | None) -> None:
    """Show a document."""
    shell.screen.block(shell.system.documents.read(path, version).body)


@doc.command("write")
@click.argument("path", type=DOCUMENT)
@click.argument("text", type=TEXT, nargs=-1)
@click.option("--file", "file", type=click.File("rb"), help="Take the text from a file.")
@click.option("--expect", metavar="N", type=_Expect, help="Only if N is the latest version; 0: if there is none.")
@click.pass_obj
def write(shell: ShellPlace, path: str, text: tuple[str, ...], file: BinaryIO | None, expect: int | None) -> None:
    """Write a document: TEXT, a file, or what you make of it in $EDITOR.

    The editor opens when nothing is given, and what it leaves is not written over what somebody wrote meanwhile.
    """
    if text and file is not None:
        raise click.UsageError("Give TEXT or --file, not both.")
    if file is not None:
        _write(shell, path, decoded(file), expect)
    elif text:
        _write(shell, path, " ".join(text), expect)
    elif shell.attended:
        _edit(shell, path, expect)
    else:
        raise click.UsageError("Give TEXT or --file; an editor needs a terminal.")


@doc.command("delete")
@click.argument("path", type=DOCUMENT)
@click.option("--expect", metavar="N", type=_Expect, help="Only if N is the latest version.")
@click.pass_obj
def delete(shell: ShellPlace, path: str, expect: int | None) -> None:
    """Delete a document; its versions stay readable."""
    author = shell.current
    version = shell.wait_for(lambda: shell.system.documents.delete(path, author=author, expect=expect))
    shell.screen.line(f"{path}: deleted in version {version}")


@doc.command("log")
@click.argument("path", type=DOCUMENT)
@click.pass_obj
def log(shell: ShellPlace, path: str) -> None:
    """List the versions of a document."""
    for version in shell.system.documents.log(path):
        shell.screen.line(_described(shell, version))


def _list(shell: ShellPlace, prefix: str) -> None:
    documents = shell.system.documents.list(prefix)
    for latest in documents:
        shell.screen.block(f"{latest.path}  {_described(shell, latest)}")
    if not documents:
        shell.screen.line("No documents.")


def _described(shell: ShellPlace, version: DocumentVersion) -> str:
    by = shell.system.handle(version.author).record.short if version.author is not None else None
    return version.to_person(by)


def _write(shell: ShellPlace, path: str, body: str, expect: int | None) -> None:
    author = shell.current
    version = shell.wait_for(lambda: shell.system.documents.write(path, body, author=author, expect=expect))
    shell.screen.line(f"{path}: version {version}")


def _edit(shell: ShellPlace, path: str, expect: int | None) -> None:
    """Let a person change a document. What cannot be written is kept in a file: it was work."""
    try:
        before = shell.system.documents.read(path)
        text, version = before.body, before.version
    except DocumentNotFound as missing:
        text, version = "", missing.version
    body = shell.edit(text)
    if body is None:
        shell.screen.line("Nothing was changed.")
        return
    try:
        _write(shell, path, body, version if expect is None else expect)
    except IkigaiError as error:
        with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8", delete=False) as kept:
            kept.write(storable(body))
        raise click.ClickException(f"{error} Your text is kept in {kept.name}.") from error
