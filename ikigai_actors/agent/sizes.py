"""Sizes: how many tokens a request has, and how much of the model's window it fills.

The latest reply has reported the size of its own request; only the messages since are estimated. If no reply under the
summary in force has reported a size, all of the request is estimated.
"""

import json
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from ikigai_actors.agent.turn.compaction import ANSWER_TOKENS, MOST_PUT_OFF
from ikigai_actors.agent.turn.plan import READABLE
from ikigai_actors.agent.turn.skills import system_of
from ikigai_actors.agent.turn.tokens import UNTOLD, tokens_of, tokens_per_byte
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import spent_of

COMPACT_AT = 0.8
"""The default part of the window at which a conversation is summarised."""
TOLD_AT = 0.8
"""The part of the window at which people get a notice."""
CRAMPED = 3
"""The divisor of the window. If the system prompt and the tools take more than this part of it, summaries come too
often."""
LEAST_NEW = 0.1
"""The part of the window that must be added after a summary before another automatic summary."""
MORE_PART = 0.05
"""The part of the window by which a request must grow to be summarised again after an attempt that gave no summary."""
LEFT_PART = 0.9
"""A request with less than this part of the last request's tokens counts as a different one, because much was cleared
or rewound.
"""
_MARGIN = 1.1
"""The error of an estimate, as a factor."""
_SPARE = 1_000
"""Tokens that stay free beside the reply; of small windows a twentieth."""


class Fit(NamedTuple):
    """The size of the next request, compared with the window of its model."""

    tokens: int
    """The approximate number of tokens of the request."""
    window: int
    """The size of the model's window, in tokens."""
    near: float
    """The number of tokens at which, by the settings, the request is near the limit of the window."""
    may_be_near: bool
    """Whether a summary may be made when the request is near the limit."""
    is_full: bool
    """Whether the request leaves no room for a reply."""
    readable: float
    """The part of the conversation that the model can read when it writes a summary, from 0 to 1."""
    pays: bool
    """Whether another summary is worth its cost, because the one in force has freed more tokens than it took."""
    is_cramped: bool
    """Whether the system prompt and the tools alone take much of the window."""

    @property
    def is_to_be_told(self) -> bool:
        """Return whether people must get a notice that the request is long."""
        return self.tokens >= TOLD_AT * self.window


def fit_of(log: Log, head: int, model: str, settings: Mapping[str, Any], fixed: int, window: int) -> Fit:
    """Return the size of the next request, compared with the window of its model.

    Args:
        head: the position of the request's latest message.
        model: the model that will be asked, ``provider:model``.
        fixed: the number of tokens outside the conversation (`fixed_tokens`).
        window: the size of the model's window, in tokens.
    """
    tokens = request_tokens(log, head, model, fixed)
    at = settings.get("compact_at", COMPACT_AT)
    near: float = at * window if at <= 1 else at
    reply = min(settings.get("max_tokens", ANSWER_TOKENS), window // 4)
    is_full = tokens > window - reply - min(_SPARE, window // 20)
    may = not log.was_uncompacted(head) and _new_tokens(log, head) >= LEAST_NEW * window
    asked = tokens + min(ANSWER_TOKENS, window // 4) + min(_SPARE, window // 20)
    beside = fixed if fixed < min(window, tokens) else 0  # else the estimate is wrong: a model has answered in there
    part = READABLE * (window - beside) / max(tokens - beside, 1)
    readable = 1.0 if asked <= window else min(part, READABLE)
    pays = _has_paid(log, head, fixed)
    return Fit(tokens, window, near, may, is_full, readable, pays, CRAMPED * fixed > window)


def puts_off(fit: Fit, squeezed: int, left_at: int) -> bool:
    """Return whether a request is delayed until a summary is made.

    If the last summary was not worth its cost, a request is sent as long as it fits, even if little room is left for
    the reply. If the service refuses the request, it is sent again after a summary.

    Args:
        fit: how the request fits into the window.
        squeezed: how many times the request was delayed already.
        left_at: the tokens of an earlier request that was sent because no summary could be made (`State.left_at`).
    """
    as_before = left_at and LEFT_PART * left_at <= fit.tokens < left_at + MORE_PART * fit.window
    near = fit.tokens > fit.near and fit.may_be_near and not as_before
    if not fit.pays and fit.tokens <= fit.window:
        return False
    return (near and squeezed == 0) or (fit.is_full and squeezed < MOST_PUT_OFF)


def parts_of(log: Log, settings: Mapping[str, Any], tools: Sequence[Mapping[str, Any]] | None) -> dict[str, int]:
    """Return the approximate number of tokens of each part of the next request: fixed parts and messages.

    Args:
        tools: the descriptions of the agent's tools; None leaves them out, because they are not known.
    """
    head = log.head
    elide, per_byte = log.elided(head), tokens_per_byte(log, head)
    summary, prompt = log.opening(head)
    shown = [*log.spoken(head), *([] if prompt is None else [prompt])]
    tokens = [(tokens_of(message, per_byte, elide), message.kind == Kind.TOOL_RESULT) for message in shown]
    return {
        "system": int(_system_bytes(settings) * UNTOLD),
        **({} if tools is None else {"tools": int(_tools_bytes(tools) * UNTOLD)}),
        "summary": 0 if summary is None else tokens_of(summary, per_byte),
        "kept": sum(size for size, is_result in tokens if not is_result),
        "results": sum(size for size, is_result in tokens if is_result),
    }


def fixed_tokens(settings: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> int:
    """Return the approximate number of tokens of the system prompt and of the descriptions of tools."""
    return int((_system_bytes(settings) + _tools_bytes(tools)) * UNTOLD)


def _system_bytes(settings: Mapping[str, Any]) -> int:
    return len(system_of(settings).encode("utf-8", "replace"))


def _tools_bytes(tools: Sequence[Mapping[str, Any]]) -> int:
    return len(json.dumps(list(tools), default=str)) if tools else 0


def request_tokens(log: Log, head: int, model: str, fixed: int = 0) -> int:
    """Return the approximate number of tokens of a request with the conversation up to a position.

    ``fixed``: the number of tokens outside the conversation. Sizes that replies report include them.
    """
    since, elide, per_byte = 0, log.elided(head), tokens_per_byte(log, head)
    for message in log.spoken(head):
        spent = spent_of(message) if message.kind == Kind.ASSISTANT and message.data.get("model") == model else None
        if spent is not None and log.is_shown_as(head, message.id):
            usage = spent.usage
            read = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
            return read + usage.output_tokens + ceil(since * _MARGIN)
        since += tokens_of(message, per_byte, elide)
    opening = sum(tokens_of(entry, per_byte) for entry in log.opening(head) if entry is not None)
    return ceil((since + opening + fixed) * _MARGIN)


def report_tokens(
    log: Log, head: int, model: str, fixed: int, part: Sequence[Message] | None, talk: Sequence[Message]
) -> int:
    """Return the approximate number of tokens of a request for a summary of another agent's history.

    Args:
        head: the position up to which the model is shown the history.
        fixed: the number of tokens outside the conversation.
        part: the messages that are shown in place of the whole history; None for the whole history.
        talk: the messages that follow the history or the part.
    """
    shown = request_tokens(log, head, model, fixed) if part is None else fixed
    return shown + sum(tokens_of(message, UNTOLD) for message in (*(part or ()), *talk))


def _new_tokens(log: Log, head: int) -> float:
    """Return the approximate tokens added since the summary in force; without one, more than any window has."""
    lens = log.view(head).lens
    if lens is None:
        return float("inf")
    size, per_byte = 0, tokens_per_byte(log, head)
    for message in log.spoken(head):
        if message.id <= lens.id:
            break
        size += tokens_of(message, per_byte, lens.elide)
    return size


def _has_paid(log: Log, head: int, fixed: int) -> bool:
    """Return whether the summary in force has saved more tokens than it cost; True if no model wrote it.

    The cost is the summary's text, and the system prompt and tools of the request for it. Reading the conversation does
    not count, because that is in the provider's cache.
    """
    summary, _ = log.opening(head)
    if summary is None or summary.data.get("how") != "model":
        return True
    before, after, per_byte = (summary.data.get(name, 0) for name in ("before", "after", "tokens_per_byte"))
    return bool(before - after > tokens_of(summary, per_byte) + fixed)
