"""Table ``blobs``: the bytes of pictures, PDFs and sounds, each stored once under its hash. Messages refer to them.

The bytes are written in the transaction of whatever refers to them first: a message, a prompt that waits as mail, or a
request of another process. So a reference always leads to its bytes, and a fork copies none. Nothing deletes a blob but
`drop_unreferenced`, which whoever deletes messages calls in the same transaction.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ikigai_actors.attachments import Attachment
from ikigai_actors.records.blob_references import ATTACHMENTS_KEY
from ikigai_actors.store.base import Transaction


def write_blobs(tx: Transaction, given: Iterable[Attachment]) -> None:
    """Store the bytes of attachments that are not stored yet."""
    found = {one.sha256: one for one in given}
    if not found:
        return
    known = {sha256 for (sha256,) in tx.run("known_blobs", hashes=sorted(found))}
    for sha256, one in found.items():
        if sha256 not in known:
            tx.run("add_blob", sha256=sha256, media=one.media, bytes=one.data)


def read_blobs(tx: Transaction, hashes: Iterable[str]) -> dict[str, bytes]:
    """The bytes of blobs, by their hash; one that is missing is left out."""
    return {sha256: bytes(data) for sha256, data in tx.run("read_blobs", hashes=sorted(hashes))}


def referenced(tx: Transaction) -> Iterator[str]:
    """The hash of each blob to which a message, a prompt or a request refers; some more than once."""
    for (text,) in tx.run("referring"):
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):  # damage, of which fsck tells
            continue
        yield from _hashes(data)


def drop_unreferenced(tx: Transaction) -> int:
    """Delete the blobs to which nothing refers any more; return how many."""
    kept = set(referenced(tx))
    dropped = [sha256 for (sha256,) in tx.run("all_blobs") if sha256 not in kept]
    if dropped:
        tx.run("drop_blobs", hashes=dropped)
    return len(dropped)


def _hashes(data: Any) -> Iterator[str]:
    if not isinstance(data, Mapping):
        return
    yield from _hashes(data.get("data"))  # of a request to fork
    listed = data.get(ATTACHMENTS_KEY)
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("sha256"), str):
            yield one["sha256"]
