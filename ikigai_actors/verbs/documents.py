"""Verbs about documents. A person at a shell writes as the current agent."""

import io
import sys
import tempfile
from typing import TYPE_CHECKING, BinaryIO

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import DOCUMENT, TEXT, keyed
from ikigai_actors.verbs.place import ShellPlace
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.verb import LocalOption, VerbGroup, verb

if TYPE_CHECKING:
    from ikigai_actors.records.documents import DocumentVersion
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place

_Expect = click.IntRange(min=0)


@verb("list", script="", everywhere=True)
@click.argument("prefix", type=DOCUMENT, default="")
def list_documents(place: "Place", prefix: str) -> object:
    """List the documents whose paths begin with PREFIX."""
    documents = place.system.documents.list(prefix)
    for latest in documents:
        place.screen.block(f"{latest.path}  {_described(place, latest)}")
    if not documents and isinstance(place, ShellPlace):
        place.screen.line("No documents.")
    return [words.as_row(latest) for latest in documents]


@verb("show", script="", everywhere=True)
@click.argument("path", type=DOCUMENT)
@click.option("--version", metavar="N", type=click.IntRange(min=1), help="An earlier version.")
def show_document(place: "Place", path: str, version: int | None) -> object:
    """Show a document. Into a pipe or a file it is printed byte for byte."""
    document = place.system.documents.read(path, version)
    place.screen.whole(document.body)
    return words.as_row(document)


@verb("write", script="--as", everywhere=True)
@click.argument("path", type=DOCUMENT)
@click.argument("text", type=TEXT, nargs=-1)
@click.option(
    "--file",
    "file",
    cls=LocalOption,
    type=click.File("rb"),
    help="Take the text from a file; for a script, - is its input.",
)
@click.option("--expect", metavar="N", type=_Expect, help="Only if N is the latest version; 0: if there is none.")
@keyed
def write_document(
    place: "Place",
    agent: "AgentRef | None",
    path: str,
    text: tuple[str, ...],
    expect: int | None,
    file: BinaryIO | None = None,
    key: str | None = None,
) -> object:
    """Write a document: TEXT, or a file. At a terminal of a shell, without either, you edit the document in $EDITOR.

    A script's TEXT of - is its standard input. The edited text is not written if somebody else has written the document
    meanwhile.
    """
    if text and file is not None:
        raise click.UsageError("Give TEXT or --file, not both.")
    if text == ("-",) and place.has_input:
        file = io.BytesIO() if sys.stdin is None else sys.stdin.buffer
    if file is not None:
        return _write(place, agent, path, words.decoded(file), expect, key)
    if text:
        return _write(place, agent, path, " ".join(text), expect, key)
    if isinstance(place, ShellPlace) and place.attended:
        return _edit(place, agent, path, expect)
    raise click.UsageError("Give TEXT or --file; an editor needs a terminal.")


@verb("delete", script="--as", everywhere=True)
@click.argument("path", type=DOCUMENT)
@click.option("--expect", metavar="N", type=_Expect, help="Only if N is the latest version.")
def delete_document(place: "Place", agent: "AgentRef | None", path: str, expect: int | None) -> object:
    """Delete a document; its versions stay readable."""
    version = place.wait_for(lambda: place.system.documents.delete(path, author=agent, expect=expect))
    place.screen.line(f"{path}: deleted in version {version}")
    return {"path": path, "version": version}


@verb("log", script="", everywhere=True)
@click.argument("path", type=DOCUMENT)
def log_document(place: "Place", path: str) -> object:
    """List the versions of a document, with author and time."""
    versions = place.system.documents.log(path)
    for version in versions:
        place.screen.line(_described(place, version))
    return [words.as_row(version) for version in versions]


doc = VerbGroup(
    "doc",
    "List, show, write and delete the documents that all agents share.\n\nEach write makes a version, and so does a "
    "deletion; versions stay readable.",
    (list_documents, show_document, write_document, delete_document, log_document),
    usual=list_documents,
    needs=Right.PROMPT,
)


def _described(place: "Place", version: "DocumentVersion") -> str:
    by = place.system.handle(version.author).record.short if version.author is not None else None
    return version.to_person(by)


def _write(
    place: "Place", author: "AgentRef | None", path: str, body: str, expect: int | None, key: str | None = None
) -> object:
    version = place.wait_for(lambda: place.system.documents.write(path, body, author=author, expect=expect, key=key))
    place.screen.line(f"{path}: version {version}")
    return {"path": path, "version": version}


def _edit(shell: ShellPlace, author: "AgentRef | None", path: str, expect: int | None) -> object:
    """Let a person edit a document, and write it. A text that cannot be written is saved in a file."""
    from ikigai_actors.errors import DocumentNotFound, IkigaiError
    from ikigai_actors.text import storable

    try:
        before = shell.system.documents.read(path)
        text, version = before.body, before.version
    except DocumentNotFound as missing:
        text, version = "", missing.version
    body = shell.edit(text)
    if body is None:
        shell.screen.line("Nothing was changed.")
        return None
    try:
        return _write(shell, author, path, body, version if expect is None else expect)
    except IkigaiError as error:
        with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8", delete=False) as kept:
            kept.write(storable(body))
        raise click.ClickException(f"{error} Your text is kept in {kept.name}.") from error
