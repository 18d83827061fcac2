"""The built-in calls about documents: document_write, document_read, document_list, document_delete.

Paths and texts are checked when the unit is written, so any error becomes the call's result.
"""

from dataclasses import dataclass
from typing import ClassVar

from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall, Given, text
from ikigai_actors.agent.builtin_calls.naming import CalledAs
from ikigai_actors.records.documents import (
    DOCUMENT_LIMIT,
    DocumentVersion,
    WriteVersion,
    check_document,
    check_path,
    check_version,
    listed,
    read_version,
)
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.text import binary_size
from ikigai_actors.tools.function import cut

_PATH = Argument("string", "A relative path, such as plan/mast.md.", required=True)


class DocumentWriteCall(BuiltinCall):
    """The call ``document_write``: write a document."""

    name = "document_write"
    description = (
        "Write a markdown document that all agents can read: the whole text. Every write makes a version. Give expect "
        "when you change what you have read: then nobody's work is lost."
    )
    arguments: ClassVar = {
        "path": _PATH,
        "body": Argument(
            "string", f"The whole text; at most {binary_size(DOCUMENT_LIMIT)}.", required=True, may_be_empty=True
        ),
        "expect": Argument(
            "integer",
            "The version that your text is based on; 0 when there must be none yet. Else nothing is written.",
        ),
    }

    def act(self, agent: str, arguments: Given, now: int) -> "WriteDocument":
        return WriteDocument(agent, text(arguments, "path"), text(arguments, "body"), arguments.get("expect"), now)

    def to_model(self, answer: int) -> str:
        return f"Version {answer}."


class DocumentReadCall(BuiltinCall):
    """The call ``document_read``: read a document."""

    name = "document_read"
    description = "Read a document, and which version it is."
    arguments: ClassVar = {
        "path": _PATH,
        "version": Argument("integer", "An earlier version; the latest when left out."),
    }

    def act(self, agent: str, arguments: Given, now: int) -> "ReadDocument":
        return ReadDocument(text(arguments, "path"), arguments.get("version"))

    def to_model(self, answer: str) -> str:
        return cut(answer)


class DocumentListCall(BuiltinCall):
    """The call ``document_list``: list documents."""

    name = "document_list"
    description = "List the documents: path, version, author, time."
    arguments: ClassVar = {"prefix": Argument("string", "Only paths that begin with this.")}

    def act(self, agent: str, arguments: Given, now: int) -> "ListDocuments":
        return ListDocuments(text(arguments, "prefix"))

    def to_model(self, answer: str) -> str:
        return cut(answer)


class DocumentDeleteCall(BuiltinCall):
    """The call ``document_delete``: delete a document."""

    name = "document_delete"
    description = "Delete a document. Its versions stay readable."
    arguments: ClassVar = {"path": _PATH, "expect": Argument("integer", "Delete only this version.")}

    def act(self, agent: str, arguments: Given, now: int) -> "WriteDocument":
        return WriteDocument(agent, text(arguments, "path"), None, arguments.get("expect"), now)

    def to_model(self, answer: int) -> str:
        return f"Deleted: that is version {answer}."


CALLS = (DocumentWriteCall(), DocumentReadCall(), DocumentListCall(), DocumentDeleteCall())


@dataclass(frozen=True, slots=True)
class WriteDocument(Unit):
    """The unit that writes a document, or deletes it when there is no body; answered with the new version.

    Raises the errors of `Documents.write`.
    """

    agent: str
    path: str
    body: str | None
    expect: int | None
    now: int

    def write(self, tx: Transaction, locked: LockedRows) -> int:
        if self.expect is not None:
            check_version(self.expect, least=0)
        body = None if self.body is None else check_document(self.body)
        return WriteVersion(check_path(self.path), body, self.agent, self.expect, self.now).write(tx, locked)


@dataclass(frozen=True, slots=True)
class ReadDocument(Unit):
    """The unit that reads a document. Raises the errors of `Documents.read`."""

    path: str
    version: int | None

    def write(self, tx: Transaction, locked: LockedRows) -> str:
        version = read_version(tx, self.path, self.version)
        about = DocumentVersion(version.path, version.version, version.author, version.created_at, False)
        return f"{version.path}: {about.to_person(CalledAs(tx)[version.author])}\n\n{version.body}"


@dataclass(frozen=True, slots=True)
class ListDocuments(Unit):
    """The unit that lists documents. Raises the errors of `Documents.list`."""

    prefix: str

    def write(self, tx: Transaction, locked: LockedRows) -> str:
        names = CalledAs(tx)
        return "\n".join(
            f"{document.path}: {document.to_person(names[document.author])}" for document in listed(tx, self.prefix)
        ) or ("No documents.")
