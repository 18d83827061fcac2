"""Boundaries: the positions at which a history may be cut. Pure; `StoredHistory` and `Log` read for it.

A history may be cut after a message unless a step is in progress there: a summary keeps what follows a boundary, and a
fork may begin at one. So no call is separated from its result, and no question from its answer.

    positions   1   2   3   4   5   6            u = prompt, a = reply, c = tool_call, r = tool_result
    messages    u   a   c   r   u   a            the reply at 2 has one call
    boundaries  1           4   5   6

No step is in progress if all calls of the latest reply have results, or if the step has ended without them: by an
interruption, an error, a rewind, a clear, the next prompt, or the birth of an agent that inherits the reply.
"""

from collections.abc import Callable, Sequence

from ikigai_actors.records.messages.messages import DECIDING, Kind, Message
from ikigai_actors.records.messages.replies import calls_in

Reading = Callable[[int, int], Sequence[Message]]
"""Reads a history: ``(start, end)`` returns the messages with ``start < id <= end``, oldest first, including clears and
rewinds.
"""

_AT_ONCE = 16
"""How many messages are read together."""


def is_boundary(read: Reading, position: int, at_once: int = _AT_ONCE) -> bool:
    """Return whether a history may be cut after a position; 0 is before its first message.

    Args:
        read: reads the history.
        at_once: the number of messages that are read together, backwards until one decides.
    """
    following = next(iter(read(position, position + 1)), None)
    messages: list[Message] = []  # newest first
    low = position
    while low > 0:
        high, low = low, max(0, low - at_once)
        for message in reversed(read(low, high)):
            messages.append(message)
            if message.kind in DECIDING:
                return _is_cut(messages[::-1], following)
    return _is_cut(messages[::-1], following)


def nearest(read: Reading, position: int, head: int) -> tuple[int | None, int | None]:
    """Return the nearest boundaries before and after a position, up to the head; None if there is none."""
    before = next((place for place in range(min(position, head + 1) - 1, -1, -1) if is_boundary(read, place)), None)
    after = next((place for place in range(max(position, -1) + 1, head + 1) if is_boundary(read, place)), None)
    return before, after


def _is_cut(messages: Sequence[Message], following: Message | None) -> bool:
    """Return whether a history may be cut after the first of these messages. Only it and the following one decide."""
    if not messages:
        return True
    first, last = messages[0], messages[-1]
    if last.kind == Kind.CLEAR:
        return following is None or following.kind != Kind.CONFIGURE  # a clear carries settings over, in its unit
    if last.kind == Kind.OMITTED:
        return False  # nobody knows what was in progress there
    if last.kind == Kind.USER:
        return True
    born = [place for place, message in enumerate(messages) if message.kind == Kind.FORK and "parent" in message.data]
    if born and following is not None and _continues_birth(messages[born[-1] :], following):
        return False
    if first.kind != Kind.ASSISTANT or born:
        return True
    answered = {message.data.get("tool_use_id") for message in messages if message.kind == Kind.TOOL_RESULT}
    return all(call.id in answered for call in calls_in(first))


def _continues_birth(messages: Sequence[Message], following: Message) -> bool:
    """Return whether ``following`` belongs to the messages that are written at the birth of a child.

    A birth writes a ``fork``. The settings of the child follow it, or the result of the call that forked the child. A
    prompt may follow the result.

    Args:
        messages: the history from the ``fork`` on.
        following: the message after them.
    """
    kinds = [message.kind for message in (*messages, following)]
    return kinds[1:] in ([Kind.CONFIGURE], [Kind.TOOL_RESULT], [Kind.TOOL_RESULT, Kind.USER])
