"""The setting ``options``: fields that a service takes and ikigai has no setting for, sent as they are. Pure."""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Request

_OTHERWISE = {
    "max_tokens": "the setting max_tokens",
    "max_completion_tokens": "the setting max_tokens",
    "max_output_tokens": "the setting max_tokens",
    "n_predict": "the setting max_tokens",
    "system": "the setting system",
    "instructions": "the setting system",
    "stop_sequences": "the setting stop_sequences",
    "stop": "the setting stop_sequences",
    "thinking": "the setting thinking",
    "model": "the setting model",
    "tools": "the setting tools",
}
"""By field that a request sets itself, what to use instead. Limits are always among them: budgets rely on them."""
_LIMITS = {"max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict", "stream"}
_MORE = {"n", "n_cmpl", "best_of", "candidate_count", "background"}
"""Fields by which a service writes several replies or continues after the request, so that its bill has no limit."""


def extra_options(request: Request, taken: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the setting ``options``, to be sent with the request as they are.

    Args:
        taken: the fields that the request sets itself.

    Raises:
        ProviderError: an option has the name of such a field; or an option would let the service write more than the
            one reply for which a budget has reserved tokens.
    """
    options = request.settings.get("options") or {}
    inner = options.get("extra_body")  # of Pydantic AI's model settings, whose fields go into the request
    for name in (*options, *(inner if isinstance(inner, Mapping) else ())):
        if name in taken or name in _LIMITS:
            way = f"Use {_OTHERWISE[name]}." if name in _OTHERWISE else "Take it out of options."
            raise ProviderError(f"The setting options has {name!r}, which the request says by itself. {way}", free=True)
        if name in _MORE:
            reason = "which could make the service write more than the one reply that budgets count"
            raise ProviderError(f"The setting options has {name!r}, {reason}. Take it out of options.", free=True)
    return dict(options)
