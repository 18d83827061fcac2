"""What `ActorSystem.open` makes of its arguments: who answers, what can be called, who decides on calls."""

import inspect
import os
from collections.abc import Iterable, Mapping
from typing import Any

from ikigai_actors.arguments import shown
from ikigai_actors.calls import Approver
from ikigai_actors.errors import BadInput
from ikigai_actors.policy import Policy
from ikigai_actors.providers.anthropic import AnthropicProvider
from ikigai_actors.providers.base import Provider
from ikigai_actors.providers.offline import OfflineProvider
from ikigai_actors.runtime import Providers
from ikigai_actors.settings import check_defaults
from ikigai_actors.tools import Tool
from ikigai_actors.toolsets import Toolset


def choose_approver(approvals: Approver | str) -> tuple[Policy, Approver | None]:
    """What becomes of calls that ask, and the function that decides on them. Raises `BadInput`."""
    if callable(approvals):
        return Policy.ASK, approvals
    try:
        return Policy(approvals), None
    except ValueError as error:
        raise BadInput(
            f"Expected approvals to be a function, 'ask', 'deny' or 'allow'; got {shown(approvals)}."
        ) from error


def choose_providers(
    provider: Provider | str | None, others: Mapping[str, Provider], settings: Mapping[str, Any] | None = None
) -> Providers:
    """The providers, which one answers for agents whose settings name none, and what else goes to their models.

    Raises `BadInput`.
    """
    if not isinstance(others, Mapping):
        raise BadInput(f"Expected providers to be a dict from names to providers; got {shown(others)}.")
    for name, one in others.items():
        _check_provider_name(name)
        _check_provider(one, f"providers[{name!r}]")
    defaults = check_defaults({} if settings is None else settings)
    registered: dict[str, Provider] = {"offline": OfflineProvider(), "anthropic": AnthropicProvider(), **others}
    if provider is None:
        provider = "anthropic" if os.environ.get("ANTHROPIC_API_KEY") else "offline"
    if not isinstance(provider, str):
        _check_provider(provider, "provider")
        return Providers(registered, provider, settings=defaults)
    name, _, model = provider.partition(":")
    if name not in registered:
        meant = "" if ":" in provider else f" A model is named with its provider, as anthropic:{name}."
        raise BadInput(f"There is no provider {name!r}; expected one of {', '.join(sorted(registered))}.{meant}")
    return Providers(registered, registered[name], model, defaults)


def check_tools(tools: object) -> list[Tool | Toolset]:
    """The tools as a list. Raises `BadInput` for what is none."""
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise BadInput(f"Expected tools to be a list of tools; got {shown(tools)}.")
    given = [*tools]
    for one in given:
        if inspect.isclass(one) or not (isinstance(one, Toolset) or all(hasattr(one, part) for part in _OF_A_TOOL)):
            remedy = " Put @tool on the function, or write tool(function)." if inspect.isroutine(one) else ""
            raise BadInput(f"Expected each of tools to be a tool or a toolset; got {shown(one)}.{remedy}")
    return given


_OF_A_TOOL = ("name", "timeout", "facts", "is_async", "describe", "call", "call_async")


def _check_provider_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip() or ":" in name:
        raise BadInput(
            f"Expected the name of a provider without a colon, for 'name:model' settings; got {shown(name)}."
        )


def _check_provider(provider: Provider, what: str) -> None:
    if inspect.isclass(provider):
        raise BadInput(f"Expected {what} to be a provider; got the class {provider.__name__}. Make one of it: call it.")
    if not all(callable(getattr(provider, part, None)) for part in ("respond", "close")):
        remedy = " Put a function into FunctionProvider(...)." if callable(provider) else ""
        raise BadInput(
            f"Expected {what} to be a provider, which has a name, respond and close (see Provider); "
            f"got {shown(provider)}.{remedy}"
        )
    _check_provider_name(getattr(provider, "name", None))
