"""Which provider answers for an agent, by the argument of `ActorSystem.open` and by settings."""

import inspect
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput, ProviderUnknown
from ikigai_actors.providers.anthropic import AnthropicProvider
from ikigai_actors.providers.base import Provider
from ikigai_actors.providers.offline import OfflineProvider


class Providers:
    """The registered providers by name, and the one for agents whose settings name none."""

    def __init__(
        self,
        registered: Mapping[str, Provider],
        default: Provider,
        default_model: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings = dict(settings or {})
        """The settings for the models of agents that have not set them."""
        self._registered = {**registered, default.name: default}
        self._default = default
        self._default_model = default_model

    def choose(self, setting: str | None) -> tuple[Provider, str]:
        """The provider and the model's name within it, for an agent's ``model`` setting. Raises `ProviderUnknown`."""
        if not setting:
            return self._default, self._default_model
        name, _, model = setting.partition(":")
        provider = self._registered.get(name)
        if provider is None:
            known = ", ".join(sorted(self._registered))
            raise ProviderUnknown(
                f"The model setting {setting!r} names provider {name!r}, which is not registered. Registered: {known}. "
                "Change the setting, or open the system with providers={...}."
            )
        return provider, model

    def __iter__(self) -> Iterator[Provider]:
        return iter(self._registered.values())


def usual_provider() -> str:
    """The name of the provider where nobody has named one: Anthropic's if there is a key, else the offline stand-in."""
    return AnthropicProvider.name if os.environ.get("ANTHROPIC_API_KEY") else OfflineProvider.name


def choose_providers(
    provider: Provider | str | None, others: Mapping[str, Provider], settings: Mapping[str, Any] | None = None
) -> Providers:
    """Choose the providers, the default one among them, and the default settings of models.

    Args:
        provider: the default: the provider itself, ``"name"`` or ``"name:model"``; None takes Anthropic's if there is a
            key.
        others: further providers by name.
        settings: settings for the models of agents that have not set them, checked before.

    Raises:
        BadInput: a name is unknown, or an argument is of a wrong type.
    """
    if not isinstance(others, Mapping):
        raise BadInput(f"Expected providers to be a dict from names to providers; got {shown(others)}.")
    for name, one in others.items():
        _check_provider_name(name)
        _check_provider(one, f"providers[{name!r}]")
    built_in: tuple[Provider, ...] = (OfflineProvider(), AnthropicProvider())
    registered = {**{one.name: one for one in built_in}, **others}
    if provider is None:
        provider = usual_provider()
    if not isinstance(provider, str):
        _check_provider(provider, "provider")
        return Providers(registered, provider, settings=settings)
    name, _, model = provider.partition(":")
    if name not in registered:
        meant = "" if ":" in provider else f" A model is named with its provider, as anthropic:{name}."
        raise BadInput(f"There is no provider {name!r}; expected one of {', '.join(sorted(registered))}.{meant}")
    return Providers(registered, registered[name], model, settings)


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
