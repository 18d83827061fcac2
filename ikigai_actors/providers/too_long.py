"""Refusals of requests that are longer than a model's window, as services word them. Pure."""

import re
from typing import NamedTuple

from ikigai_actors.errors import ProviderError


class TooLong(NamedTuple):
    """The numbers in a service's refusal of a request that was too long."""

    tokens: int
    """The tokens of the request; 0 if not given."""
    window: int
    """The window of the model in tokens; 0 if not given."""


_WITH_BOTH = (
    re.compile(r"prompt is too long: (?P<tokens>\d+) tokens > (?P<window>\d+) maximum"),
    re.compile(r"exceed context limit: (?P<tokens>\d+) \+ \d+ > (?P<window>\d+)"),
    re.compile(
        r"maximum context length is (?P<window>\d+) tokens.*?(?:resulted in|requested) (?P<tokens>\d+)", re.DOTALL
    ),
    re.compile(
        r"input token count \((?P<tokens>\d+)\) exceeds the maximum number of tokens allowed \((?P<window>\d+)\)"
    ),
)
WINDOW_EXCEEDED = "model_context_window_exceeded"
"""The stop reason of a reply that was cut because the window was full."""

_WITHOUT = re.compile(
    r"context_length_exceeded|exceeds the available context size|input is too long for requested model"
    r"|model_context_window_exceeded|prompt is too long|request_too_large|\(413[,)]",
    re.IGNORECASE,
)


def too_long(text: str) -> TooLong | None:
    """Return the numbers in a service's refusal of a request as too long; None for any other text.

    A refusal because of the length of the reply (``max_tokens: 100000 > 64000``), or of a limit for a minute, counts as
    another text. Numbers that the refusal does not give are 0.
    """
    for pattern in _WITH_BOTH:
        if (match := pattern.search(text)) is not None:
            return TooLong(int(match["tokens"]), int(match["window"]))
    return TooLong(0, 0) if _WITHOUT.search(text) else None


def refusal(tokens: int, window: int) -> ProviderError:
    """Return the error for a request that is too long to be sent, worded as a service would."""
    return ProviderError(f"prompt is too long: {tokens} tokens > {window} maximum", free=True)
