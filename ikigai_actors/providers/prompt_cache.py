"""Where Anthropic's prompt cache is told to remember a request: four breakpoints at most. Pure.

The cache writes what a request holds up to each of its breakpoints. It reads what an earlier request wrote, when this
one begins with the same blocks and has a breakpoint there, or less than 20 blocks further on.

    tools  system|  …  user|  assistant|  …  user|
                 1         2           3         4

1. The end of the system prompt, which covers the tools; of the tools, when there is none.
2. The last user message before the fork's assistant message: what the parent wrote when it asked for that reply.
3. The end of the assistant message at the fork: the last that parent and siblings share.
4. The last message: what the agent's next request begins with, and its forks' requests.

An agent that shares nothing with others is treated as if it had been forked at its latest reply: then 2 stands where
its own last request wrote, however many blocks its calls and their results have added since.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.providers.blocks import THINKING

MARK: Mapping[str, str] = {"type": "ephemeral"}
"""The ``cache_control`` of a block at a breakpoint."""

_Block = Mapping[str, Any]


def with_breakpoints(arguments: Mapping[str, Any], shared: int) -> dict[str, Any]:
    """The arguments of a request with its breakpoints marked; those given stay as they are.

    Args:
        arguments: ``messages``, and ``system`` and ``tools`` when there are any, each as a list.
        shared: How many blocks the request shares with others (`Request.shared`).
    """
    marked = {**arguments, "messages": _mark_messages(arguments["messages"], shared)}
    first = next((part for part in ("system", "tools") if arguments.get(part)), None)
    if first is not None:
        marked[first] = _mark(arguments[first], len(arguments[first]))
    return marked


def _mark_messages(messages: Sequence[Mapping[str, Any]], shared: int) -> list[Mapping[str, Any]]:
    """The messages with the breakpoints 2 to 4."""
    marked = list(messages)
    last = len(messages) - 1
    fork, end = _find(messages, shared) if shared else (last - 1, None)
    for place, blocks in ((fork - 1, None), (fork, end), (last, None)):
        if place >= 0:
            content = messages[place]["content"]
            marked[place] = {**messages[place], "content": _mark(content, blocks or len(content))}
    return marked


def _find(messages: Sequence[Mapping[str, Any]], shared: int) -> tuple[int, int]:
    """Where the last shared block stands: the index of its message, and how many blocks of that message are shared.

    It need not be the message's last: a reply of the agent's own may have been joined to it.
    """
    for place, message in enumerate(messages):
        if shared <= len(message["content"]):
            return place, shared
        shared -= len(message["content"])
    raise ValueError(f"The request has {shared} blocks less than it is said to share.")


def _mark(blocks: Sequence[_Block], end: int) -> list[_Block]:
    """The blocks, the last of the first ``end`` that can be a breakpoint marked."""
    marked = list(blocks)
    for place in reversed(range(end)):
        if blocks[place].get("type") not in THINKING:
            marked[place] = {**blocks[place], "cache_control": MARK}
            break
    return marked
