"""The speed and duration of an agent's work, as its page shows them. Pure: times are arguments."""

from collections import deque

from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import spent_of

_RECENT = 3.0
"""The last seconds from which the speed of an answer is computed."""

A_TOKEN = 4
"""The approximate number of characters of a token."""


class Pace:
    """The speed at which the answer of a model arrives."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def tokens_a_second(self, size: int, now: float) -> float:
        """Record how many characters have arrived; return the recent number of tokens a second, approximately."""
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
        """The times of the first and the latest message of the turn, in milliseconds since 1970; 0 before any
        message.
        """
        self.tokens = 0
        """The tokens of the answers in the turn."""

    @property
    def seconds(self) -> float:
        """Return the duration of the turn so far, in seconds."""
        return (self.ended - self.began) / 1000

    def add(self, message: Message) -> None:
        """Add the next message of the log; a prompt begins a new span."""
        if message.kind == Kind.USER or not self.began:
            self.began, self.tokens = message.created_at, 0
        self.ended = message.created_at
        if (spent := spent_of(message)) is not None:
            self.tokens += spent.usage.output_tokens
