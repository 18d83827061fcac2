"""A conversation as a model sees it: a chain of passages, which requests share.

Each passage refers to the one before it, so a conversation that goes on, that branches or that goes back is one
reference, and what was before is never copied. `Conversation` shows such a chain as the messages of the Messages API.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

ContentBlock = Mapping[str, Any]
"""A content block of the Messages API."""


class Passage(NamedTuple):
    """Blocks of one role, and all that stands before them. Never changed."""

    earlier: "Passage | None"
    role: str
    blocks: Sequence[ContentBlock]
    """At least one."""
    messages: int
    """How many messages the chain is; neighbours of the same role are one."""
    total: int
    """How many blocks the chain has."""
    replied: int
    """How many blocks it has up to the end of its last reply."""
    calls: tuple[tuple[str, str, str], ...] = ()
    """The calls of the reply with which it ends: id in the log, id in the request, name."""


def extended(
    last: Passage | None, role: str, blocks: Sequence[ContentBlock], calls: Sequence[tuple[str, str, str]] = ()
) -> Passage:
    """The chain with blocks added at its end.

    Args:
        last: The chain so far; None when there is none.
        role: Whose blocks these are.
        blocks: The blocks, at least one.
        calls: `Passage.calls`.
    """
    messages, total, replied = (last.messages, last.total, last.replied) if last is not None else (0, 0, 0)
    total += len(blocks)
    joined = last is not None and last.role == role
    replied = total if role == "assistant" else replied
    return Passage(last, role, blocks, messages if joined else messages + 1, total, replied, tuple(calls))


class Conversation(Sequence[Mapping[str, Any]]):
    """The messages of a chain, oldest first. They are made when they are read, the last ones first.

    Its blocks are its own: whoever changes one changes no other request. What is within a block is shared.
    """

    __slots__ = ("_last", "_made")

    def __init__(self, last: Passage) -> None:
        """Show a chain.

        Args:
            last: the passage with which it ends.
        """
        self._last = last
        self._made: tuple[list[Mapping[str, Any]], Passage | None] = [], last  # newest first; what is not made yet

    def __len__(self) -> int:
        return self._last.messages

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        count = len(self)
        if isinstance(index, slice):
            return tuple(self[place] for place in range(count)[index])
        back = count - 1 - range(count)[index]
        return self._newest(back + 1)[back]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        yield from reversed(self._newest(len(self)))

    def __reversed__(self) -> Iterator[Mapping[str, Any]]:
        return (self[place] for place in range(len(self) - 1, -1, -1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | tuple | Conversation):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as a tuple of dicts

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self),)  # a copy, or what another process gets, is a plain tuple

    def _newest(self, count: int) -> list[Mapping[str, Any]]:
        """At least so many of the last messages, newest first. Two threads may make the same ones."""
        made, passage = self._made
        if len(made) < count:
            made, wanted = list(made), max(count, 2 * len(made))
            while passage is not None and len(made) < wanted:
                role, parts = passage.role, []
                while passage is not None and passage.role == role:
                    parts.append(passage.blocks)
                    passage = passage.earlier
                made.append({"role": role, "content": [dict(block) for part in reversed(parts) for block in part]})
            self._made = made, passage
        return made
