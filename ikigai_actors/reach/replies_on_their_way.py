"""The replies in progress, each with its text so far.

    replies.add(uuid, "The mast ", 17)      # the reply comes after message 17
    replies.behind(uuid, (3, 4))            # what the third reply of this agent has after its fourth character

Each piece has the index of its first character, so a page that missed pieces gets the rest, and a new page gets the
whole text.
"""

import threading
from typing import NamedTuple

_MOST = 1_000_000
"""The most characters of a reply that are kept; the beginning of a longer reply is dropped."""


class UnseenPiece(NamedTuple):
    """The part of a reply in progress that a page has not seen."""

    number: int
    """The number of the reply among the replies of the agent, from 1."""
    at: int
    """The index of the first character of the text in the reply."""
    text: str
    follows: int
    """The message that the reply continues; 0 if unknown."""


class _Reply:
    def __init__(self, number: int, follows: int) -> None:
        self.number, self.follows, self.dropped, self.text, self.parts = number, follows, 0, "", list[str]()

    def joined(self) -> str:
        if self.parts:
            self.text += "".join(self.parts)
            self.parts.clear()
            if len(self.text) > _MOST:
                self.dropped += len(self.text) - _MOST // 2
                self.text = self.text[-(_MOST // 2) :]
        return self.text


class RepliesOnTheirWay:
    """The texts of the replies in progress, of all agents. Thread-safe."""

    def __init__(self) -> None:
        self._open: dict[str, _Reply] = {}
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, uuid: str, text: str, follows: int = 0) -> None:
        """Add a piece of a reply; ``follows`` is the position of the message before the reply."""
        with self._lock:
            reply = self._open.get(uuid)
            if reply is None:
                number = self._numbers[uuid] = self._numbers.get(uuid, 0) + 1
                reply = self._open[uuid] = _Reply(number, follows)
            reply.parts.append(text)

    def close(self, uuid: str) -> None:
        """Forget the reply of an agent, because it was committed or cut off."""
        with self._lock:
            self._open.pop(uuid, None)

    def clear(self) -> None:
        """Drop the texts of all replies in progress."""
        with self._lock:
            self._open.clear()

    def behind(self, uuid: str, seen: tuple[int, int]) -> UnseenPiece | None:
        """Return the part of the reply in progress that comes after ``seen``; None when there is nothing new.

        ``seen`` is the number of a reply, and the number of its known characters.
        """
        with self._lock:
            reply = self._open.get(uuid)
            if reply is None:
                return None
            text, start = reply.joined(), seen[1] if seen[0] == reply.number else 0
            start = max(start, reply.dropped)
            rest = text[start - reply.dropped :]
            return UnseenPiece(reply.number, start, rest, reply.follows) if rest else None

    def is_open(self, uuid: str, number: int) -> bool:
        """Return whether this reply of an agent is still in progress."""
        with self._lock:
            reply = self._open.get(uuid)
            return reply is not None and reply.number == number
