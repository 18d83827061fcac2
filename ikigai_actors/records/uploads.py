"""Table ``uploads``: files that a principal has uploaded before a message refers to them, each a blob.

    AddUpload("anna", attachment, now)              # answered with nothing; again renews it
    upload_of(tx, "anna", sha256)                   # an `Attachment` for a prompt; raises `BadInput`

A row names the principal of the file, and protects its blob from a prune for a day. The bytes are written with the row,
so a crash leaves both or neither. The prompt that refers to the file writes the bytes again if a prune has deleted
them.
"""

from dataclasses import dataclass

from ikigai_actors.attachments import LARGEST, Attachment
from ikigai_actors.errors import BadInput, NotAllowed
from ikigai_actors.records.messages.blobs import read_blobs, write_blobs
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit

UPLOAD_KEPT_MS = 24 * 60 * 60 * 1_000
"""The milliseconds for which an upload is kept."""

MOST_UPLOADED = 50 * LARGEST
"""The most bytes that a principal may upload within that time."""


@dataclass(frozen=True, slots=True)
class AddUpload(Unit):
    """Store a file that a principal has uploaded, for a day. Raises `NotAllowed`."""

    principal: str
    file: Attachment
    now: int

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        since = self.now - UPLOAD_KEPT_MS
        [(others,)] = tx.run("size_of_uploads", principal=self.principal, but=self.file.sha256, since=since)
        if others + len(self.file.data) > MOST_UPLOADED:
            raise NotAllowed(
                f"{self.principal} has uploaded {others:,} bytes within a day, and may upload {MOST_UPLOADED:,}."
            )
        write_blobs(tx, [self.file])
        tx.run(
            "add_upload",
            sha256=self.file.sha256,
            principal=self.principal,
            name=self.file.name,
            size=len(self.file.data),
            now=self.now,
        )


def upload_of(tx: Transaction, principal: str, sha256: str) -> Attachment:
    """Return the file with a hash that a principal has uploaded.

    Raises `BadInput` for any other file, with one message.
    """
    for name, media in tx.run("upload", principal=principal, sha256=sha256):
        if (data := read_blobs(tx, [sha256]).get(sha256)) is not None:
            return Attachment(data, media, sha256, name)
    raise BadInput(f"Expected the sha256 of a file that {principal} has uploaded; got {sha256[:80]!r}. Upload it.")


def prune_uploads(tx: Transaction, now: int) -> None:
    """Delete the rows of uploads that are older than a day."""
    tx.run("drop_uploads", before=now - UPLOAD_KEPT_MS)
