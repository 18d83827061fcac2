"""The messages of a request as JSON of the Messages API, cached in the passages: each passage is encoded once.

A passage caches its own bytes. If the bytes since the last joined passage fill a chunk, it also caches these joined,
with the passage at which they begin. So a request refers to each chunk of a chain, and siblings share the chunks.

    passages   a   b   c   d   e   f   g
    kept       a   b   c   d   e   f   g   each passage caches its own bytes
    joined             abc     de          c and e also cache a chunk; the request is abc, de, f, g

All threads would make equal bytes, so no lock is needed. The cache is dropped with the passages.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.providers.conversation import Passage
from ikigai_actors.providers.messages_form import Blobs, block_form

CHUNK = 32_768
"""The most joined bytes; a longer passage is a chunk of its own."""

MARK: Mapping[str, str] = {"type": "ephemeral"}
"""The ``cache_control`` of a block at a breakpoint."""

Breakpoint = tuple[Passage, int]
"""A passage, and the index of one of its blocks."""


class _Encoder(json.JSONEncoder):
    """An encoder that writes the values in blocks, such as mappings, exactly as the client of the API does."""

    def default(self, o: object) -> object:
        if isinstance(o, Mapping):
            return dict(o)
        return super().default(o)


to_json = _Encoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""A function that writes a value as JSON, exactly as the client of the API does."""
_MARKED = f',"cache_control":{to_json(MARK)}}}'.encode()


class _Kept:
    __slots__ = ("ends", "joined", "json", "since")

    def __init__(self, json: bytes, ends: Sequence[int], since: int) -> None:
        self.json = json
        """The JSON of the passage alone."""
        self.ends = ends
        """The offset in `json` at which each block ends."""
        self.since = since
        """The number of bytes since the last joined bytes, those of this passage included."""
        self.joined: tuple[bytes, Passage | None] | None = None
        """The joined bytes, if they fill a chunk, and the passage before them; else None."""


def encoded(last: Passage, blobs: Blobs, breakpoints: Iterable[Breakpoint]) -> list[bytes]:
    """Return the messages of a chain as JSON bytes for the Messages API, in pieces.

    Args:
        last: the passage with which the chain ends.
        blobs: the bytes that its blocks refer to.
        breakpoints: blocks of the chain to mark with ``cache_control``, each once.

    Raises:
        ValueError, TypeError: a block cannot be written as JSON in UTF-8.
    """
    _encode(last, blobs)
    marked: dict[Passage, list[int]] = {}
    for passage, place in breakpoints:
        marked.setdefault(passage, []).append(place)
    ahead = sorted(passage.total for passage in marked)  # the marks that are not reached yet
    parts = [b"]}]"]
    reached: Passage | None = last
    while reached is not None:
        kept: _Kept = reached.kept
        joined, before = kept.joined or (b"", None)
        start = before.total if before is not None else 0
        if joined and not (ahead and start < ahead[-1]):
            parts.append(joined)
            reached = before
        elif reached in marked:
            parts.append(_with_marks(reached, marked[reached]))
            ahead.pop()
            reached = reached.earlier
        else:
            parts.append(kept.json)
            reached = reached.earlier
    parts.reverse()
    return parts


def passage_with(last: Passage, block: int) -> Passage:
    """Return the passage that has the block with this number, counted from 1. Quick once the chain is encoded."""
    while last.earlier is not None and last.earlier.total >= block:
        joined = last.kept.joined if last.kept is not None else None
        far = joined[1] if joined is not None else None
        last = far if far is not None and far.total >= block else last.earlier
    return last


def _encode(last: Passage, blobs: Blobs) -> None:
    """Cache the JSON of each passage of the chain that has none yet."""
    new: list[Passage] = []
    reached: Passage | None = last
    while reached is not None and reached.kept is None:
        new.append(reached)
        reached = reached.earlier
    while new:
        passage = new.pop()
        begin = _begin(passage)
        blocks = [_json(block_form(block, blobs)) for block in passage.blocks]
        own = begin + b",".join(blocks)
        end = len(begin) - 1
        ends = tuple(end := end + 1 + len(block) for block in blocks) if len(blocks) > 1 else (len(own),)
        since = len(own)
        if passage.earlier is not None:
            before: _Kept = passage.earlier.kept
            if before.since + since > CHUNK:
                _join(passage.earlier)
            else:
                since += before.since
        passage.kept = _Kept(own, ends, since)


def _join(passage: Passage) -> None:
    """Cache the joined bytes of the passages up to this one, unless another request has done so."""
    kept: _Kept = passage.kept
    if kept.joined is not None:
        return
    parts = [kept.json]
    reached = passage.earlier
    while reached is not None and reached.kept.joined is None:
        parts.append(reached.kept.json)
        reached = reached.earlier
    parts.reverse()
    kept.joined = b"".join(parts), reached


def _begin(passage: Passage) -> bytes:
    """Return the JSON text that comes before the blocks of a passage."""
    if passage.earlier is not None and passage.earlier.role == passage.role:
        return b","
    message = b'{"role":%b,"content":[' % to_json(passage.role).encode()
    return (b"[" if passage.earlier is None else b"]},") + message


def _with_marks(passage: Passage, places: Iterable[int]) -> bytes:
    kept: _Kept = passage.kept
    own = kept.json
    for place in sorted(places, reverse=True):  # the last first: the others stay where they are
        end, form = kept.ends[place], getattr(passage.blocks[place], "own", None)
        if form is not None and "cache_control" in form:
            start = kept.ends[place - 1] + 1 if place else len(_begin(passage))
            own = own[:start] + _json({**form, "cache_control": MARK}) + own[end:]
        else:
            own = own[: end - 1] + _MARKED + own[end:]
    return own


def _json(value: Mapping[str, Any]) -> bytes:
    return to_json(value).encode()
