"""Documents: markdown under a path, shared by all agents.

    documents = system.documents
    first = documents.write("plan/mast.md", "# Mast", author=dba)       # 1
    documents.write("plan/mast.md", "# Mast, taller", expect=first)     # 2; DocumentChanged if somebody was faster
    documents.read("plan/mast.md").body                                 # "# Mast, taller"
    documents.read("plan/mast.md", version=1).body                      # "# Mast"

Each write makes a version, with its author and time, and so does a deletion. Versions count per path from 1, without
holes, and stay readable. If two writers, even in two processes, write at the same time, the primary key decides. The
second one then gets the next version, or `DocumentChanged`.

Paths are clean and relative: names between slashes. They are no files: nothing of the file system is touched.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ikigai_actors.actors.forked import OfOneProcess
from ikigai_actors.arguments import check_count, check_timeout
from ikigai_actors.errors import BadInput, DocumentChanged, DocumentNotFound
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.agents.registry import Handle, shown_name_of, uuid_of
from ikigai_actors.records.once import KeyedCall
from ikigai_actors.store.asker import current_principal
from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.text import check_text, utc_time

PATH_LIMIT = 512
"""The most bytes of a path, in UTF-8."""

DOCUMENT_LIMIT = 1024 * 1024
"""The most bytes of a document, in UTF-8."""

_EXPECTED = "Expected a path like 'plan/mast.md': names between slashes, without '.', '..' or a slash at an end"


@dataclass(frozen=True, slots=True)
class Document:
    """One version of a document."""

    path: str
    version: int
    """The number of the version, from 1."""
    author: str | None
    """The uuid of the agent that wrote it; None for a person."""
    created_at: int
    """The time of the write, in milliseconds since 1970 (UTC)."""
    body: str
    """The text, in markdown."""


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """A version of a document, without its text."""

    path: str
    version: int
    """The number of the version, from 1."""
    author: str | None
    """The uuid of the agent that made it; None for a person."""
    created_at: int
    """The time when it was made, in milliseconds since 1970 (UTC)."""
    deleted: bool
    """Whether this version is a deletion."""

    @property
    def created_time(self) -> datetime:
        """The time when the version was made, in UTC."""
        return utc_time(self.created_at)

    def to_person(self, author: str | None) -> str:
        """Describe the version in words; ``author`` is the name of its author."""
        when = self.created_time.strftime("%Y-%m-%d %H:%M:%S UTC")
        made = "deleted" if self.deleted else "written"
        return f"version {self.version}, {made} by {author or 'a person outside'} at {when}"


Versions = list[DocumentVersion]


def check_path(path: str) -> str:
    """Return a path, or raise `BadInput` unless it is a clean relative one."""
    check_text(path, "path")
    if not path:
        raise BadInput(f"{_EXPECTED}; got an empty one.")
    if len(path.encode()) > PATH_LIMIT:
        raise BadInput(
            f"Expected a path of at most {PATH_LIMIT} bytes, got {len(path.encode()):,}. Choose a shorter one."
        )
    if path.startswith("/"):
        raise BadInput(f"{_EXPECTED}; {path!r} is absolute.")
    if "\\" in path:
        raise BadInput(f"{_EXPECTED}; {path!r} has a backslash. Write / between names.")
    if not path.isprintable():
        raise BadInput(f"{_EXPECTED}; {path!r} has characters that cannot be seen.")
    for name in path.split("/"):
        if name in ("", ".", "..") or name != name.strip():
            raise BadInput(f"{_EXPECTED}; {path!r} has the name {name!r}.")
    return path


def check_document(body: str) -> str:
    """Return the text, or raise `BadInput` if it is longer than `DOCUMENT_LIMIT` or cannot be stored."""
    check_text(body, "document")
    if len(body) > DOCUMENT_LIMIT // 4 and (size := len(body.encode())) > DOCUMENT_LIMIT:
        raise BadInput(f"Expected a document of at most {DOCUMENT_LIMIT:,} bytes, got {size:,}. Cut it into several.")
    return body


@dataclass(frozen=True, slots=True)
class WriteVersion(Unit):
    """Write or delete a document; answered with the number of the new version.

    Raises:
        DocumentChanged: the latest version is not the expected one.
        DocumentNotFound: there is nothing to delete.
        AgentNotFound, AgentDead: the author is no living agent.
    """

    path: str
    body: str | None
    """The text; None deletes the document."""
    author: str | None
    expect: int | None
    now: int

    locks = ("author",)

    def write(self, tx: Transaction, locked: LockedRows) -> int:
        if self.author is not None:
            locked.living(self.author, " and writes no documents. Write as one that lives")
        while True:
            there = _latest(tx, self.path)
            version = 0 if there is None else there.version
            if self.expect is not None and self.expect != version:
                raise _changed(tx, self.path, self.expect, there)
            if self.body is None and (there is None or there.deleted):
                raise _not_there(tx, self.path, there)
            if tx.run(
                "add_document_version",
                path=self.path,
                version=version + 1,
                author=self.author,
                body=self.body,
                now=self.now,
                principal=current_principal() if self.author is None else None,
            ):
                return version + 1


class Documents(OfOneProcess):
    """The documents of a system: ``system.documents``."""

    def __init__(
        self,
        store: Store,
        perform: Callable[[Unit, float | None], Any],
        now_ms: Callable[[], int],
        perform_once: Callable[..., Any],
        write_as_act: Callable[[Mapping[str, Any]], Any] = lambda arguments: None,
    ) -> None:
        """Make the documents from a store, and functions that commit.

        Args:
            perform: commits a unit, waits this many seconds for it, and returns its answer.
            now_ms: returns the time, in milliseconds since 1970.
            perform_once: does the same once for a `KeyedCall`.
            write_as_act: writes as a program's act, if a program calls; else returns None.
        """
        self._write_as_act = write_as_act
        self._store, self._perform, self._now_ms, self._perform_once = store, perform, now_ms, perform_once

    def write(
        self,
        path: str,
        body: str,
        *,
        author: Handle | str | None = None,
        expect: int | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> int:
        """Write a document; return the number of the new version, after the commit.

        Args:
            path: a clean relative path.
            body: the whole text, at most 1 MiB in UTF-8.
            author: the agent that writes: a handle, uuid, name or prefix. None is a person; in a program, it is the
                program's agent.
            expect: the version on which the text is based; 0 if there must be none yet. None overwrites any version.
            key: 1 to 200 printable characters that name this version for its author, or among those of people. A second
                call with the key writes nothing, and returns the number of the first version.
            timeout: seconds to wait; None waits forever.

        Raises:
            BadInput: the path or the text cannot be used. `KeyTaken`: the key names another call.
            DocumentChanged: the latest version is not the expected one; the message and ``version`` name it.
            AgentNotFound, AmbiguousAgent, AgentDead: the author cannot be found, or is dead.
        """
        unit = self._unit(check_path(path), check_document(body), author, expect, timeout)
        asked = {"path": path, "body": body, "expect": expect, "author": getattr(author, "uuid", author)}
        if (act := self._write_as_act({**asked, "key": key, "timeout": timeout})) is not None:
            return act if act.is_driven else int(act.get())
        if key is None:
            version: int = self._perform(unit, timeout)
            return version
        by = "" if author is None else uuid_of(self._store, author)
        arguments = {"path": path, "body": body, "expect": expect}
        call = KeyedCall(key, "write", arguments, by, by or None, path)
        return int(self._perform_once(unit, call, timeout))

    def delete(
        self,
        path: str,
        *,
        author: Handle | str | None = None,
        expect: int | None = None,
        timeout: float | None = None,
    ) -> int:
        """Delete a document; return the number of the version that this makes. Earlier versions stay readable.

        Args:
            path: a clean relative path.
            author: the agent that deletes, as in `write`.
            expect: the version to delete; None deletes any version.
            timeout: seconds to wait; None waits forever.

        Raises:
            DocumentNotFound: there is no such document. Also what `write` raises.
        """
        version: int = self._perform(self._unit(check_path(path), None, author, expect, timeout), timeout)
        return version

    def read(self, path: str, version: int | None = None) -> Document:
        """Read a document.

        Args:
            path: a clean relative path.
            version: the number of the version; None is the latest.

        Raises:
            DocumentNotFound: there is no such document, or no such version.
            BadInput: the path or the number cannot be used.
        """
        return self._store.read(lambda tx: read_version(tx, path, version))

    def list(self, prefix: str = "") -> Versions:
        """Return the documents whose paths begin with a prefix, by path; deleted ones are left out."""
        return self._store.read(lambda tx: listed(tx, prefix))

    def log(self, path: str) -> Versions:
        """Return all versions of a document, oldest first, including deletions.

        Raises `DocumentNotFound`, `BadInput`.
        """
        check_path(path)
        versions = _versions(self._store.read(lambda tx: tx.run("document_log", path=path)))
        if not versions:
            raise _unknown(path)
        return versions

    def _unit(
        self, path: str, body: str | None, author: Handle | str | None, expect: int | None, timeout: float | None
    ) -> Unit:
        if expect is not None:
            check_count(expect, "expect")
        check_timeout(timeout)
        now = self._now_ms()

        def written(by: str | None) -> WriteVersion:
            return WriteVersion(path, body, by, expect, now)

        return written(None) if author is None else about(author, WriteVersion, written)


def check_version(version: int, least: int) -> None:
    """Raise `BadInput` unless the number is a valid version, at least ``least``."""
    check_count(version, "version", least)


def _versions(rows: list[Row]) -> Versions:
    return [DocumentVersion(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows]


def _latest(tx: Transaction, path: str) -> DocumentVersion | None:
    versions = _versions(tx.run("latest_version", path=path))
    return versions[0] if versions else None


def listed(tx: Transaction, prefix: str) -> Versions:
    """Return the documents whose paths begin with a prefix, by path; deleted ones are left out. Raises `BadInput`."""
    check_text(prefix, "prefix")
    return sorted(_versions(tx.run("documents", prefix=prefix, length=len(prefix))), key=lambda version: version.path)


def read_version(tx: Transaction, path: str, version: int | None) -> Document:
    """Return a version of a document; None is the latest. Raises `DocumentNotFound`, `BadInput`."""
    check_path(path)
    if version is not None:
        check_version(version, least=1)
    which = {} if version is None else {"version": version}
    rows = tx.run("document_version" if which else "document", path=path, **which)
    if rows and rows[0][4] is not None:
        return Document(*rows[0])
    there = _latest(tx, path)
    if version is None or there is None:
        raise _not_there(tx, path, there)
    what = "is a deletion" if rows else "was never written"
    message = f"Version {version} of document {path!r} {what}; there is {_told(tx, there)}."
    raise DocumentNotFound(message, path, there.version)


def _unknown(path: str) -> DocumentNotFound:
    return DocumentNotFound(f"There is no document {path!r}. See the list of documents.", path)


def _not_there(tx: Transaction, path: str, there: DocumentVersion | None) -> DocumentNotFound:
    if there is None:
        return _unknown(path)
    message = f"Document {path!r} was deleted: {_told(tx, there)}. Its earlier versions can be read."
    return DocumentNotFound(message, path, there.version)


def _changed(tx: Transaction, path: str, expect: int, there: DocumentVersion | None) -> DocumentChanged:
    state = f"there is {_told(tx, there)}" if there is not None else "nothing was ever written there"
    version = 0 if there is None else there.version
    return DocumentChanged(
        f"Expected document {path!r} at version {expect}; {state}. Read it, and write again with expect={version}.",
        path,
        version,
    )


def _told(tx: Transaction, version: DocumentVersion) -> str:
    return version.to_person(None if version.author is None else shown_name_of(tx, version.author))
