"""The breakpoints of a request in their simplest form: on the messages themselves, each request anew. The oracle."""

from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.providers.blocks import THINKING
from ikigai_actors.providers.message_json import MARK

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
