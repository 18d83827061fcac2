"""The breakpoints at which Anthropic's prompt cache stores a request, four at most. Pure.

The cache stores the beginning of a request up to each of its breakpoints. A later request that begins with the same
blocks uses the stored part, if it has a breakpoint there, or less than 20 blocks further on.

    tools  system|  …  user|  assistant|  …  user|
                 1         2           3         4

1. The end of the system prompt, which covers the tools; of the tools, when there is none. The service leaves out of
   it those that are loaded later, and refuses a mark on one of them.
2. The last user message before the fork's assistant message: what the parent wrote when it asked for that reply.
3. The end of the assistant message at the fork: the last that parent and siblings share.
4. The last message: what the agent's next request begins with, and its forks' requests.

An agent that shares nothing with others is treated as if it had been forked at its latest reply: then 2 is where its
own last request wrote, however many blocks its calls and their results have added since.

A batch may take longer than the five minutes for which the cache remembers. A beginning that several of its requests
have in common, as forks of a history do, is stored for an hour, which costs more (`marked_for_an_hour`).
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from ikigai_actors.providers.blocks import ThinkingBlock
from ikigai_actors.providers.conversation import Passage
from ikigai_actors.providers.message_json import MARK, Breakpoint, passage_with

_Block = Mapping[str, Any]


def marked(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request with breakpoint 1 set; the given arguments are not changed.

    Args:
        arguments: ``system`` and ``tools`` when there are any, each as a list.
    """
    first = next((part for part in ("system", "tools") if arguments.get(part)), None)
    if first is None:
        return dict(arguments)
    blocks: Sequence[_Block] = arguments[first]
    place = max((at for at, block in enumerate(blocks) if not block.get("defer_loading")), default=None)
    if place is None:
        return dict(arguments)
    return {**arguments, first: [*blocks[:place], {**blocks[place], "cache_control": MARK}, *blocks[place + 1 :]]}


def breakpoints(last: Passage, shared: int) -> list[Breakpoint]:
    """Return the breakpoints 2 to 4 of a conversation.

    Args:
        last: The passage with which the conversation ends.
        shared: The number of its first blocks that other requests share (`Request.shared`).

    Raises:
        ValueError: The conversation has fewer blocks.
    """
    if shared > last.total:
        raise ValueError(f"The request has {shared - last.total} blocks less than it is said to share.")
    fork, end = last, None
    if shared:
        fork = passage_with(last, shared)
        end = shared - (fork.earlier.total if fork.earlier is not None else 0)
    elif (before := _message_before(last)) is not None:
        fork = before
    ends: Iterable[tuple[Passage | None, int | None]] = ((_message_before(fork), None), (fork, end), (last, None))
    places = (_last_markable(passage, end) for passage, end in ends if passage is not None)
    return list(dict.fromkeys(place for place in places if place is not None))


def marked_for_an_hour(requests: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return the requests of a batch; marks that several of the requests can use are set to last for an hour.

    The service refuses a mark of an hour after one of five minutes, so all marks before it last for an hour too.

    Args:
        requests: The arguments of each, with their breakpoints. Their marks are changed.
    """
    marks = [list(_marks_of(arguments)) for arguments in requests]
    times = Counter(digest for places in marks for digest, _ in places)
    for places in marks:
        last = max((at for at, (digest, _) in enumerate(places) if times[digest] > 1), default=-1)
        for _, block in places[: last + 1]:
            block["cache_control"] = {**MARK, "ttl": "1h"}
    return requests


def _marks_of(arguments: Mapping[str, Any]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield each marked block of a request, with a digest of all blocks up to it."""
    messages = arguments.get("messages", ())
    spoken = [(message["role"], block) for message in messages for block in _blocks(message["content"])]
    shared = [(part, block) for part in ("tools", "system") for block in _blocks(arguments.get(part) or ())]
    so_far = sha256(json.dumps([arguments.get("model"), arguments.get("tool_choice")]).encode())
    for part, block in (*shared, *spoken):
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        so_far.update(json.dumps([part, plain], sort_keys=True).encode())
        if "cache_control" in block:
            yield so_far.digest(), block


def _blocks(content: Any) -> Sequence[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _message_before(passage: Passage) -> Passage | None:
    """Return the last passage of the message before the one to which this passage belongs; None if there is none."""
    return next((message for message in _back(passage) if message.role != passage.role), None)


def _last_markable(passage: Passage, end: int | None) -> Breakpoint | None:
    """Return the last block of a message, before block ``end`` of this passage, that can be a breakpoint; else None."""
    for message in _back(passage):
        if message.role != passage.role:
            break
        for place in reversed(range(len(message.blocks) if end is None else end)):
            if not isinstance(message.blocks[place], ThinkingBlock):
                return message, place
        end = None
    return None


def _back(passage: Passage | None) -> Iterator[Passage]:
    while passage is not None:
        yield passage
        passage = passage.earlier
