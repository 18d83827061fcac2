"""Windows: how many tokens models take, by what is known of them. Pure.

The number in a service's refusal counts before the table of its provider, which may be older than the service. If the
configuration gives a model a smaller window, that counts, since somebody may not want to pay for more.
"""

from collections.abc import Mapping

from ikigai_actors.providers.too_long import TooLong

_MILLION = 1_000_000
_ANTHROPIC: Mapping[str, int] = {
    "claude-3": 200_000,
    "claude-haiku-4-5": 200_000,
    "claude-opus-4-": 200_000,
    "claude-opus-4-6": _MILLION,
    "claude-opus-4-7": _MILLION,
    "claude-opus-4-8": _MILLION,
    "claude-opus-5": _MILLION,
    "claude-sonnet-4-": 200_000,
    "claude-sonnet-4-6": _MILLION,
    "claude-sonnet-5": _MILLION,
}
"""Tokens by the beginning of a model's name; the longest one that fits counts."""

_SAFE = 0.9
"""The fraction of a refused request's size that counts as the window, if the service gives no number."""


def anthropic_window(model: str) -> int:
    """Return the window of an Anthropic model in tokens; 0 if unknown."""
    return (
        _ANTHROPIC[max(windows, key=len)]
        if (windows := [prefix for prefix in _ANTHROPIC if model.startswith(prefix)])
        else 0
    )


def learned_window(refused: TooLong, size: int) -> int:
    """Return the window of a model, in tokens, by the service's refusal of a request.

    Args:
        refused: the numbers in the refusal.
        size: the approximate tokens of the request, used if the service gave no number.
    """
    return refused.window or int(_SAFE * (refused.tokens or size))


def known_window(configured: int, learned: int, usual: int) -> int:
    """Return the window of a model, in tokens; 0 if unknown.

    If the configuration and a refusal both have a window, the smaller one counts.

    Args:
        configured: the window in ``ikigai.toml``; 0 for none.
        learned: the window according to a refusal; 0 for none.
        usual: the window according to the provider; 0 for none.
    """
    return min(configured, learned) if configured and learned else configured or learned or usual
