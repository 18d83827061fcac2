"""Table ``blobs``: the bytes of pictures, PDFs and sounds, each stored once under its hash. Messages refer to them.

The bytes are written in the transaction of the first reference to them: a message, a prompt that waits as mail, or a
request of another process. So a reference always leads to its bytes, and a fork copies none. Only `drop_unreferenced`
deletes blobs, and every deletion of messages calls it at the end.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ikigai_actors.attachments import Attachment
from ikigai_actors.records.messages.messages import ATTACHMENTS_KEY
from ikigai_actors.store.base import Transaction


def write_blobs(tx: Transaction, attachments: Iterable[Attachment]) -> None:
    """Store the bytes of attachments that are not stored yet."""
    by_hash = {attachment.sha256: attachment for attachment in attachments}
    if not by_hash:
        return
    known = {sha256 for (sha256,) in tx.run("known_blobs", hashes=sorted(by_hash))}
    for sha256, attachment in by_hash.items():
        if sha256 not in known:
            tx.run("add_blob", sha256=sha256, media=attachment.media, bytes=attachment.data)


def read_blobs(tx: Transaction, hashes: Iterable[str]) -> dict[str, bytes]:
    """Return the bytes of blobs, by their hash; missing ones are left out."""
    return {sha256: bytes(data) for sha256, data in tx.run("read_blobs", hashes=sorted(hashes))}


def referenced(tx: Transaction, but: Collection[str] = ()) -> Iterator[str]:
    """Iterate over the hashes of the blobs to which messages, prompts or requests refer. A hash may come repeatedly.

    ``but``: agents whose messages, prompts and requests do not count.
    """
    for agent, text in tx.run("referring"):
        if agent in but:
            continue
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):  # damage, which fsck reports
            continue
        yield from hashes_in(data)


def unreferenced(tx: Transaction, but: Collection[str] = ()) -> list[str]:
    """Return the hashes of the blobs to which nothing refers. ``but``: agents whose references do not count."""
    stored = [sha256 for (sha256,) in tx.run("all_blobs")]
    kept = {*referenced(tx, but), *uploaded_blobs(tx)} if stored else set[str]()
    return [sha256 for sha256 in stored if sha256 not in kept]


def uploaded_blobs(tx: Transaction) -> list[str]:
    """Return the hashes of the blobs that uploads keep (`ikigai_actors.records.uploads`)."""
    return [sha256 for (sha256,) in tx.run("uploaded_blobs")]


def drop_unreferenced(tx: Transaction) -> int:
    """Delete the blobs to which nothing refers any more; return their number.

    Each blob is checked again under a lock, because another process may refer to it meanwhile.
    """
    if hashes := unreferenced(tx):
        tx.run("lock_blobs", hashes=hashes)
        hashes = sorted(set(hashes) & set(unreferenced(tx)))
        tx.run("drop_blobs", hashes=hashes)
    return len(hashes)


def hashes_in(data: Any) -> Iterator[str]:
    """Iterate over the hashes of the blobs to which the data of a message, a prompt or a request refers."""
    if not isinstance(data, Mapping):
        return
    yield from hashes_in(data.get("data"))  # of a request to fork
    yield from hashes_in(data.get("settings"))  # of a request to pin skills
    skills = data.get("skills")
    for skill in skills if isinstance(skills, list) else ():
        yield from hashes_in(skill)
    listed = data.get(ATTACHMENTS_KEY)
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("sha256"), str):
            yield entry["sha256"]
