"""Sizes: how many tokens a request has, and whether that comes near the model's window.

What the latest reply tells of its own request counts, and what came since is estimated; where no reply has told
anything under the summary in force, all of it is.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

from ikigai_actors.agent.turn.plan import tokens_of
from ikigai_actors.providers.base import Provider
from ikigai_actors.records.log import Log
from ikigai_actors.records.messages import Kind
from ikigai_actors.records.replies import spent_of

COMPACT_AT = 0.8
"""The part of the window at which a conversation is summarised, where no setting says."""
_MARGIN = 1.1
"""What is estimated may be so much more."""


def is_near_window(log: Log, head: int, model: str, settings: Mapping[str, Any], provider: Provider) -> bool:
    """Whether a request should not leave before what was said is summarised.

    Args:
        log: the agent's log.
        head: the position of its latest message.
        model: the model that will be asked, ``provider:model``.
        settings: the settings in force.
        provider: that model's provider. Code that answers for an agent writes no summary.
    """
    window = settings.get("context_window")
    if window is None or settings.get("compact") == "off" or log.was_uncompacted(head):
        return False
    if getattr(provider, "own_code", False) and not settings.get("compact_model"):
        return False
    at = settings.get("compact_at", COMPACT_AT)
    most: float = at * window if at <= 1 else at
    return request_tokens(log, head, model) > most


def request_tokens(log: Log, head: int, model: str) -> int:
    """How many tokens the conversation up to a position has, about."""
    lens = log.view(head).lens
    measured = lens.id if lens is not None else 0
    since = 0
    for message in log.spoken(head):
        spent = spent_of(message) if message.kind == Kind.ASSISTANT and message.data.get("model") == model else None
        if spent is not None and message.id > measured:
            usage = spent.usage
            read = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
            return read + usage.output_tokens + ceil(since * _MARGIN)
        since += tokens_of(message)
    opening = sum(tokens_of(one) for one in log.opening(head) if one is not None)
    return ceil((since + opening) * _MARGIN)
