"""What `ActorSystem.open` makes of its arguments: who answers, and who decides on calls that ask."""

import os
from collections.abc import Mapping

from ikigai_actors.calls import Approver, Policy
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.anthropic import AnthropicProvider
from ikigai_actors.providers.base import Provider
from ikigai_actors.providers.offline import OfflineProvider
from ikigai_actors.runtime import Providers


def choose_approver(approvals: Approver | str) -> tuple[Policy, Approver | None]:
    """What becomes of calls that ask, and the function that decides on them. Raises `BadInput`."""
    if callable(approvals):
        return Policy.ASK, approvals
    try:
        return Policy(approvals), None
    except ValueError as error:
        raise BadInput(f"Expected approvals to be a function, 'ask', 'deny' or 'allow'; got {approvals!r}.") from error


def choose_providers(provider: Provider | str | None, others: Mapping[str, Provider]) -> Providers:
    """The providers, and which one answers for agents whose settings name none. Raises `BadInput`."""
    registered: dict[str, Provider] = {"offline": OfflineProvider(), "anthropic": AnthropicProvider(), **others}
    if provider is None:
        provider = "anthropic" if os.environ.get("ANTHROPIC_API_KEY") else "offline"
    if not isinstance(provider, str):
        return Providers(registered, provider)
    name, _, model = provider.partition(":")
    if name not in registered:
        raise BadInput(f"There is no provider {name!r}; expected one of {', '.join(sorted(registered))}.")
    return Providers(registered, registered[name], model)
