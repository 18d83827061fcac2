"""The prompt cache of the Messages API, as far as it is documented; it never forgets.

A prefix is the model, then the blocks of ``tools``, ``system`` and ``messages`` in this order, without their
``cache_control``. A request reads the longest prefix that an earlier one wrote and that ends at one of its breakpoints
or less than `LOOKBACK` blocks before one; what lies between there and its last breakpoint it writes, at each
breakpoint. Tools with ``defer_loading`` are read where a result refers to them. The real cache also forgets after
minutes, and does not take prefixes that are very short.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

LOOKBACK = 20
"""How many places are looked at for each breakpoint, itself included."""


class Served(NamedTuple):
    """How the tokens of a request were served."""

    read: int
    """From the cache."""
    written: int
    """Read by the model, and written to the cache."""
    plain: int
    """Read by the model; they follow the last breakpoint."""

    def usage(self) -> dict[str, int]:
        """As the API reports it."""
        return {
            "input_tokens": self.plain,
            "cache_creation_input_tokens": self.written,
            "cache_read_input_tokens": self.read,
        }


def tokens(block: Mapping[str, Any]) -> int:
    """A block's tokens: a quarter of its characters as JSON, without its ``cache_control``."""
    return -(-len(_text(block)) // 4)


class PromptCache:
    """What the requests so far have written."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def serve(self, request: Mapping[str, Any]) -> Served:
        """Read what is known of a request, and write the rest up to its last breakpoint."""
        blocks = list(_blocks(request))
        prefixes = _prefixes(request["model"], blocks)
        ends = list(accumulate((tokens(block) for _, block in blocks), initial=0))
        breakpoints = [place for place, (_, block) in enumerate(blocks, 1) if "cache_control" in block]
        near = {place - back for place in breakpoints for back in range(min(LOOKBACK, place))}
        read = max((place for place in near if prefixes[place] in self._known), default=0)
        written = max(breakpoints, default=0)
        self._known.update(prefixes[place] for place in breakpoints)
        return Served(ends[read], ends[written] - ends[read], ends[-1] - ends[written])


def _blocks(request: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All blocks of a request in the cache's order, each with where it stands: a message's role and number, say."""
    later = {tool["name"]: tool for tool in request.get("tools", ()) if tool.get("defer_loading")}
    yield from (("tools", tool) for tool in request.get("tools", ()) if tool["name"] not in later)
    system = request.get("system", ())
    for block in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        yield "system", block
    for number, message in enumerate(request["messages"]):
        yield from ((f"{message['role']} {number}", _loaded(block, later)) for block in message["content"])


def _loaded(block: Mapping[str, Any], later: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """A block, with the descriptions of the tools to which it refers in place of the references."""
    parts = block.get("content")
    if not isinstance(parts, list) or not any(part.get("type") == "tool_reference" for part in parts):
        return block
    return {**block, "content": [later.get(part.get("tool_name", ""), part) for part in parts]}


def _prefixes(model: str, blocks: list[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """The hash of each prefix, from that without blocks to that of all."""
    digest = hashlib.sha256(model.encode())
    prefixes = [digest.hexdigest()]
    for where, block in blocks:
        digest.update(f"\0{where}\0{_text(block)}".encode())
        prefixes.append(digest.hexdigest())
    return prefixes


def _text(block: Mapping[str, Any]) -> str:
    """A block as it is hashed; the order of its keys counts."""
    return json.dumps({key: value for key, value in block.items() if key != "cache_control"})
