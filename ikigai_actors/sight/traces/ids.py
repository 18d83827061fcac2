"""Ids of spans: hashes of stored data, so they are the same however often a turn is exported, from any machine.

An id is known before the work begins, so a span that a tool makes can name its parent.
"""

from hashlib import blake2b


def trace_of(agent: str, opens: int) -> bytes:
    """Return the id of the trace of the turn that a message opened."""
    return _hashed(16, "trace", agent, opens)


def turn_span(agent: str, opens: int, again: int) -> bytes:
    """Return the id of a turn's span; ``again`` is the number of times that the turn was opened again."""
    return _hashed(8, "invoke_agent", agent, opens, again)


def request_span(agent: str, opens: int, number: int) -> bytes:
    """Return the id of the span of a request, from its number in the turn, from 1."""
    return _hashed(8, "chat", agent, opens, number)


def call_span(agent: str, reply: int, place: int) -> bytes:
    """Return the id of a call's span, from the position of its reply and the index of the call in it, from 0."""
    return _hashed(8, "execute_tool", agent, reply, place)


def _hashed(size: int, *parts: str | int) -> bytes:
    return blake2b("\x1f".join(map(str, ("ikigai/1", *parts))).encode(), digest_size=size).digest()
