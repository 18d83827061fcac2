"""Tokens: estimates how many tokens a message has, from the sizes that replies have reported. Pure.

A reply reports how many tokens its request had. So the difference between two replies of one model is the number of
tokens of the messages between them, whatever else is sent. With their bytes, this gives the number of tokens for each
byte. The latest messages for which this is known are used. A text of digits or of Chinese has three times as many
tokens as one in English.

    messages     u   a   c   r   a   u      asked for: the tokens of the last one
    told            10          510         a to r have 2,000 bytes: 500 tokens, 0.25 for each byte

The estimate is computed from the history each time, so it is the same after a restart. A summary records the estimate
of its plan, because after it there may be no two replies yet.
"""

import json
from collections.abc import Iterator
from typing import Protocol

from ikigai_actors.agent.turn.elision import ELIDED_TOKENS, is_elided, text_to_model
from ikigai_actors.records.log.history import View
from ikigai_actors.records.messages.blob_references import blobs_of
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import spent_of

UNTOLD = 1 / 3
"""The assumed tokens of a byte, if no reply has reported a size."""
LEAST, MOST = 0.15, 0.6
"""Limits of the tokens of a byte of text. Sizes outside of them include other data than text."""
_TOO_FEW = 2_000
"""The fewest bytes from which something is learned."""
_ENOUGH = 32_000
"""The number of bytes that are enough to learn from. Older messages are not looked at."""


class Replies(Protocol):
    """The part of a log with the replies; see `ikigai_actors.records.log.log.Log`."""

    def spoken(self, position: int) -> Iterator[Message]:
        """Return the messages that a model may see verbatim, newest first."""

    def view(self, position: int) -> View:
        """Return the view of the history at a position."""

    def elided(self, position: int) -> int:
        """Return the position before which long results are replaced by references; 0 for none."""

    def is_shown_as(self, position: int, earlier: int) -> bool:
        """Whether the same summary was in force at an earlier position."""

    def opening(self, position: int) -> tuple[Message | None, Message | None]:
        """Return the summary in force, and the prompt that is shown with it."""


def tokens_per_byte(log: Replies, head: int) -> float:
    """Return the approximate number of tokens of a byte of the conversation up to a position, from 0.15 to 0.6."""
    later: Message | None = None
    ratio, size = 0.0, 0
    for message in log.spoken(head):
        has_counts = _read(message)
        if later is None:
            later = message if has_counts else None
            continue
        size += bytes_of(message, log.elided(later.id))
        if blobs_of(message):  # a picture has tokens, and no bytes here
            break
        if has_counts:
            if not _same_request(log, later, message):
                break
            more = _read(later) - has_counts
            if size >= _TOO_FEW and more > 0:
                ratio = more / size
            if size >= _ENOUGH:
                break
    if not ratio:
        summary, _ = log.opening(head)
        noted = summary.data.get("tokens_per_byte") if summary is not None else None
        return noted if isinstance(noted, float) else UNTOLD
    return round(min(MOST, max(LEAST, ratio)), 4)


def tokens_of(message: Message, per_byte: float, elide: int = 0) -> int:
    """Return the approximate number of tokens of a message. Long results before ``elide`` count as references."""
    return ELIDED_TOKENS if is_elided(message, elide) else int(bytes_of(message) * per_byte) + 1


def tokens_in(text: str, per_byte: float) -> int:
    """Return the approximate number of tokens of a text."""
    return int(len(text.encode("utf-8", "replace")) * per_byte)


def bytes_of(message: Message, elide: int = 0) -> int:
    """Return the approximate number of bytes of a message that are sent."""
    if is_elided(message, elide):
        return round(ELIDED_TOKENS / UNTOLD)
    blocks = message.data.get("blocks") or message.data.get("tool_calls")
    size = len(text_to_model(message, 0).encode("utf-8", "replace"))
    return max(size, len(json.dumps(blocks, ensure_ascii=False).encode("utf-8", "replace")) if blocks else 0)


def _read(message: Message) -> int:
    """Return the number of tokens that a reply's request had; 0 if the message is no reply or does not report it."""
    spent = spent_of(message) if message.kind == Kind.ASSISTANT else None
    if spent is None:
        return 0
    usage = spent.usage
    return usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens


def _same_request(log: Replies, later: Message, earlier: Message) -> bool:
    """Return whether the later reply's request contained everything of the earlier one's, unchanged."""
    same = later.data.get("model") == earlier.data.get("model") and log.is_shown_as(later.id, earlier.id)
    return same and log.view(later.id).settings == log.view(earlier.id).settings
