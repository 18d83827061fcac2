"""A conversation as a model sees it: a chain of passages, which requests share.

Each passage refers to the one before it, so a conversation that goes on, that branches or that goes back is one
reference, and what was before is never copied. `Conversation` shows such a chain as messages of blocks, `MessageForms`
as the dicts of the Messages API.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from ikigai_actors.providers.blocks import Blob, Block, ModelMessage, TextBlock, blobs_in
from ikigai_actors.providers.messages_form import Blobs, block_form, read_messages

M = TypeVar("M")


@dataclass(eq=False, repr=False, slots=True)
class Passage:
    """Blocks of one role, with a reference to all before them. Immutable, except for cached forms."""

    earlier: "Passage | None"
    role: str
    blocks: Sequence[Block]
    """The blocks, at least one."""
    messages: int
    """The number of messages in the chain; adjacent passages of one role are one message."""
    total: int
    """The number of blocks in the chain."""
    replied: int
    """The number of blocks up to the end of the last reply."""
    calls: tuple[tuple[str, str, str], ...] = ()
    """The calls of a reply at the end: id in the log, id in the request, name."""
    blobs: tuple[Blob, ...] = ()
    """The blobs to which the whole chain refers."""
    hidden: int = 0
    """The number of attachments, counted from the start of the chain, that are shown by reference."""
    kept: Any = None
    """The cached form of the passage for a provider, in a format that only the provider knows."""


def extended(
    last: Passage | None,
    role: str,
    blocks: Sequence[Block],
    calls: Sequence[tuple[str, str, str]] = (),
    hidden: int = 0,
) -> Passage:
    """Return the chain with blocks added at its end.

    Args:
        last: The chain so far; None when there is none.
        role: The role of the blocks: ``user`` or ``assistant``.
        blocks: The blocks, at least one.
        calls: `Passage.calls`.
        hidden: `Passage.hidden`.
    """
    messages, total, replied = (last.messages, last.total, last.replied) if last is not None else (0, 0, 0)
    total += len(blocks)
    joined = last is not None and last.role == role
    replied = total if role == "assistant" else replied
    blobs = last.blobs if last is not None else ()
    if new := [blob for block in blocks if type(block) is not TextBlock for blob in blobs_in(block)]:
        blobs = (*blobs, *new)
    messages += 0 if joined else 1
    return Passage(last, role, blocks, messages, total, replied, tuple(calls), blobs, hidden)


def chain_of(messages: Sequence[Mapping[str, Any]]) -> Passage:
    """Return the chain for messages in the form of the Messages API, at least one."""
    if isinstance(messages, MessageForms):
        return messages.last
    last: Passage | None = None
    for message in read_messages(messages):
        last = extended(last, message.role, message.blocks)
    if last is None:
        raise ValueError("Expected the messages of a request, got none.")
    return last


class _Messages(Sequence[M]):
    """The messages of a chain, oldest first. They are made when they are read, the last ones first."""

    __slots__ = ("_made", "last")

    def __init__(self, last: Passage) -> None:
        self.last = last
        """The passage with which it ends."""
        self._made: tuple[list[M], Passage | None] = [], last  # newest first; what is not made yet

    @abstractmethod
    def _message(self, role: str, blocks: Iterator[Block]) -> M:
        """Return one message of this role, of these blocks."""

    def __len__(self) -> int:
        return self.last.messages

    @overload
    def __getitem__(self, index: int) -> M: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[M]: ...

    def __getitem__(self, index: int | slice) -> M | Sequence[M]:
        count = len(self)
        if isinstance(index, slice):
            return tuple(self[place] for place in range(count)[index])
        back = count - 1 - range(count)[index]
        return self._newest(back + 1)[back]

    def __iter__(self) -> Iterator[M]:
        yield from reversed(self._newest(len(self)))

    def __reversed__(self) -> Iterator[M]:
        return (self[place] for place in range(len(self) - 1, -1, -1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | tuple | _Messages):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as a tuple of dicts

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self),)  # a copy, or what another process gets, is a plain tuple

    def _newest(self, count: int) -> list[M]:
        """Return at least ``count`` of the last messages, newest first; all if the chain has fewer.

        Two threads may make the same messages at the same time.
        """
        made, passage = self._made
        if len(made) < count:
            made, wanted = list(made), max(count, 2 * len(made))
            while passage is not None and len(made) < wanted:
                role, parts = passage.role, []
                while passage is not None and passage.role == role:
                    parts.append(passage.blocks)
                    passage = passage.earlier
                made.append(self._message(role, (block for part in reversed(parts) for block in part)))
            self._made = made, passage
        return made


class Conversation(_Messages[ModelMessage]):
    """The messages of a chain, as typed blocks."""

    __slots__ = ()

    def _message(self, role: str, blocks: Iterator[Block]) -> ModelMessage:
        return ModelMessage(role, tuple(blocks))


class MessageForms(_Messages[Mapping[str, Any]]):
    """The messages of a chain, as dicts of the Messages API.

    The dicts are made for this object, so a change of one changes no other request. Values within a block are shared.
    """

    __slots__ = ("_blobs",)

    def __init__(self, last: Passage, blobs: Blobs) -> None:
        super().__init__(last)
        self._blobs = blobs

    @property
    def conversation(self) -> Conversation:
        """Return the same messages as typed blocks."""
        return Conversation(self.last)

    def _message(self, role: str, blocks: Iterator[Block]) -> Mapping[str, Any]:
        return {"role": role, "content": [block_form(block, self._blobs) for block in blocks]}
