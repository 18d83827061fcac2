"""The speed and duration of an agent's work, as its page shows them. Pure: times are arguments."""

from collections import deque

from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import spent_of

_RECENT = 3.0
"""The last seconds from which the speed of an answer is computed."""

A_TOKEN = 4
"""The approximate number of characters of a token."""


class Pace:
    """The speed at which an answer arrives."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def tokens_a_second(self, size: int, now: float) -> float:
        """Note how many characters have arrived; return the recent number of tokens a second, approximately."""
        seen = self._seen
        if seen and size < seen[-1][1]:
            seen.clear()  # another answer
        seen.append((now, size))
        while now - seen[0][0] > _RECENT:
            seen.popleft()
        began, before = seen[0]
        return (size - before) / A_TOKEN / (now - began) if now > began else 0.0


class TurnSpan:
    """The duration and tokens of an agent's latest turn, from the messages seen so far."""

    def __init__(self) -> None:
        self.began = self.ended = 0
        """Milliseconds since 1970 of its first and its latest message; 0 when none was seen."""
        self.tokens = 0
        """Tokens of its answers."""

    @property
    def seconds(self) -> float:
        """Return the duration of the turn so far, in seconds."""
        return (self.ended - self.began) / 1000

    def add(self, message: Message) -> None:
        """Add the next message."""
        if message.kind == Kind.USER or not self.began:
            self.began, self.tokens = message.created_at, 0
        self.ended = message.created_at
        if (spent := spent_of(message)) is not None:
            self.tokens += spent.usage.output_tokens
