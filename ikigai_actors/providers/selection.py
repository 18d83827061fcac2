"""Which provider answers for an agent, by the argument of `ActorSystem.open` and by settings."""

import os
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from ikigai_actors.arguments import check_type, shown
from ikigai_actors.errors import BadInput, ProviderMissing, ProviderUnknown
from ikigai_actors.providers.anthropic import AnthropicProvider
from ikigai_actors.providers.attachment_limits import AttachmentLimits
from ikigai_actors.providers.base import Provider
from ikigai_actors.providers.batches import BatchService, batches_of
from ikigai_actors.providers.configuration import Configuration
from ikigai_actors.providers.limits import Limits
from ikigai_actors.providers.named import check_provider, check_provider_name, installed, installed_names
from ikigai_actors.providers.offline import OfflineProvider
from ikigai_actors.providers.openai import OpenAIProvider
from ikigai_actors.providers.stand_in import notice, why_silent
from ikigai_actors.providers.windows import known_window


class Choice(NamedTuple):
    """A model that may answer a request: its provider, and its name there."""

    name: str
    """The name under which its provider is registered."""
    provider: Provider
    model: str
    """The model's name within the provider; empty if the provider has none."""

    def __str__(self) -> str:
        return f"{self.name}:{self.model}"

    @property
    def counts(self) -> bool | None:
        """Whether the service bills by tokens; None if its provider does not say."""
        counts = getattr(self.provider, "counts", None)
        return counts if isinstance(counts, bool) else None

    @property
    def attachments(self) -> AttachmentLimits | None:
        """The limits of the service for attachments; None if its provider does not say."""
        limits = getattr(self.provider, "attachments", None)
        return limits if isinstance(limits, AttachmentLimits) else None

    @property
    def refers_to_tools(self) -> bool:
        """Whether the service loads tools to which a result refers; False if the provider fails to answer this."""
        asked = getattr(self.provider, "refers_to_tools", None)
        return callable(asked) and asked(self.model) is True

    @property
    def own_code(self) -> bool:
        """Whether the provider is the agent's own code, whose errors count as a crash of the agent."""
        return bool(getattr(self.provider, "own_code", False))


class Providers:
    """The registered providers by name, and the default model."""

    def __init__(
        self,
        registered: Mapping[str, Provider],
        default: str,
        settings: Mapping[str, Any] | None = None,
        configured: Configuration | None = None,
        limits: Mapping[str, Limits] | None = None,
        nobody_asked: bool = False,
    ) -> None:
        """Register providers.

        Args:
            registered: The providers by name.
            default: the model of agents without a ``model`` setting, in the form of that setting.
            settings: default settings of models, for agents that have not set them.
            configured: The models in a configuration file.
            limits: limits by provider; those of the file are used for the others.
            nobody_asked: whether the offline provider is the default because nobody chose a provider and no key is set.
        """
        self.nobody_asked = nobody_asked
        """Whether the default is the offline provider for want of a key, and nobody asked for it."""
        self.configured = configured or Configuration()
        """The models of a file."""
        self.limits = {**self.configured.limits, **(limits or {})}
        """The limits by provider."""
        self.settings = dict(settings or {})
        """The settings for the models of agents that have not set them."""
        self._registered, self._registering = dict(registered), threading.Lock()
        self._learned: dict[str, int] = {}  # windows, by ``provider:model``
        self._cramped: set[str] = set()
        self.default = default
        """The model of agents without a ``model`` setting."""

    def choose(self, setting: str | None) -> tuple[Choice, ...]:
        """Return the models of a ``model`` setting, in the order in which they are tried. Raises `ProviderUnknown`."""
        return tuple([self._find(model) for model in models_in(setting) or models_in(self.default)])

    def asked(self, settings: Mapping[str, Any], summary: bool = False) -> tuple[Choice, ...]:
        """Return the models of an agent with these settings, in the order in which they are tried.

        Args:
            settings: those of the agent.
            summary: whether the request is for a summary.

        Raises:
            ProviderUnknown: one of them names a provider that is not registered.
        """
        named = settings.get("model")
        return self.choose(settings.get("compact_model") or named if summary else named)

    def knows(self, setting: str) -> bool:
        """Return whether the providers of a ``model`` setting are registered. One that breaks counts as registered."""
        if setting.partition(":")[0] in self._registered:
            return True
        try:
            return bool(self.choose(setting))
        except ProviderUnknown:
            return False
        except (Exception, SystemExit):  # other people's code: its request says what is wrong
            return True

    def only_stands_in(self, settings: Mapping[str, Any], summary: bool = False) -> bool:
        """Return whether the offline provider would answer for these settings without having been chosen.

        Arguments as for `asked`.
        """
        named = settings.get("model")
        return self.nobody_asked and not models_in(settings.get("compact_model") or named if summary else named)

    def check_ready(self, settings: Mapping[str, Any]) -> None:
        """Raise `ProviderMissing` if none of the models of an agent with these settings has a key. May block.

        Other errors of a provider are ignored here, because its next request will report them.
        """
        missing: ProviderMissing | None = None
        for choice in self.asked(settings):
            check = getattr(choice.provider, "check_ready", None)
            try:
                if callable(check):
                    check()
            except ProviderMissing as error:
                missing = missing or error
                continue
            except (Exception, SystemExit):
                return
            return
        if missing is not None:
            raise missing

    def window(self, setting: str | None) -> int:
        """Return the window of the first model of a ``model`` setting, in tokens; 0 if unknown."""
        try:
            return self.window_of(self.choose(setting)[0])
        except ProviderUnknown:
            return 0

    def window_of(self, choice: Choice) -> int:
        """Return the window of a model, in tokens; 0 if unknown."""
        name, ask = str(choice), getattr(choice.provider, "window", None)
        usual: object = ask(choice.model) if callable(ask) else 0
        known = usual if isinstance(usual, int) and usual > 0 else 0
        configured, learned = self.configured.windows.get(name, 0), self._learned.get(name, 0)
        return known_window(configured, learned, known) if configured or learned else known

    def batches(self, model: str) -> BatchService | None:
        """Return the provider of ``provider:model`` if its service has batches.

        None if it has none, or if the provider is unknown.
        """
        try:
            [chosen] = self.choose(model)
            return batches_of(chosen.provider)
        except Exception:  # other people's code, and providers that are not here
            return None

    def learn_window(self, model: str, tokens: int) -> None:
        """Remember the window of a model, ``provider:model``, in tokens, while this process runs. Thread-safe."""
        if tokens > 0:
            self._learned[model] = tokens

    def note_cramped(self, model: str) -> bool:
        """Note that the system prompt and the tools fill much of a model's window. Return True the first time."""
        is_news = model not in self._cramped
        self._cramped.add(model)
        return is_news

    def load(self) -> None:
        """Let the providers of the usual models load slow imports. Blocks.

        Errors of a provider are ignored here, because its next request will report them.
        """
        with suppress(Exception):
            for choice in self.choose(None):
                load = getattr(choice.provider, "load", None)
                if callable(load):
                    load()

    def _find(self, setting: str) -> Choice:
        name, _, model = setting.partition(":")
        provider = self._registered.get(name) or self._installed(name)
        if provider is None:
            known = _listed(self._registered)
            meant = "" if ":" in setting else f" A model is named with its provider, as anthropic:{name}."
            raise ProviderUnknown(
                f"The model setting {setting!r} names provider {name!r}, which is not registered. Registered: {known}."
                f"{meant} Change the setting, or open the system with providers={{...}}."
            )
        usual: object = getattr(provider, "model", "")
        return Choice(name, provider, model or (usual if isinstance(usual, str) else ""))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the providers that are registered."""
        return tuple(sorted(self._registered))

    def why_silent(self, writer: str, wrote: str = "this history") -> str:
        """Return the sentence on why the offline provider does not continue a real model's history.

        See `stand_in.why_silent`.
        """
        return why_silent(writer, {*self._registered, *installed_names()}, wrote)

    def notice(self, writer: str) -> str:
        """Return the notice that the offline provider answers although nobody chose it; see `stand_in.notice`."""
        return notice(writer, {*self._registered, *installed_names()}) if self.nobody_asked else ""

    def _installed(self, name: str) -> Provider | None:
        """Return the provider that an installed package offers, registered from now on. Raises `ProviderUnknown`."""
        with self._registering:  # one of each
            if name not in self._registered:
                try:
                    provider = installed(name)
                except BadInput as error:
                    raise ProviderUnknown(str(error)) from error
                if provider is not None:
                    self._registered[name] = provider
            return self._registered.get(name)

    def __iter__(self) -> Iterator[Provider]:
        return iter([*self._registered.values()])


@lru_cache(1_024)  # each turn asks some times
def models_in(setting: str | None) -> tuple[str, ...]:
    """Return the models in a ``model`` setting, in order; they are separated by commas."""
    return tuple(name for part in (setting or "").split(",") if (name := part.strip()))


def usual_provider() -> str:
    """Return the name of the default provider: Anthropic's if there is a key, else the offline provider."""
    return AnthropicProvider.name if os.environ.get("ANTHROPIC_API_KEY") else OfflineProvider.name


def known_names(configured: Configuration) -> set[str]:
    """Return the names of the providers that can be used without code: built in, of the file, or of packages."""
    built_in = {OfflineProvider.name, AnthropicProvider.name, OpenAIProvider.name}
    return {*built_in, *configured.providers, *configured.classes, *installed_names()}


def choose_providers(
    provider: Provider | str | None,
    others: Mapping[str, Provider],
    settings: Mapping[str, Any] | None = None,
    configured: Configuration | None = None,
    limits: Mapping[str, Limits] | None = None,
) -> Providers:
    """Choose the registered providers, the default model, and the default settings of models.

    Args:
        provider: the default provider, or a text as in a ``model`` setting; None takes Anthropic's if there is a key.
        others: further providers by name.
        settings: settings for the models of agents that have not set them, checked before.
        configured: the contents of ``ikigai.toml``; the arguments take precedence.
        limits: limits by provider.

    Raises:
        BadInput: a name is unknown, or an argument is of a wrong type.
    """
    if not isinstance(others, Mapping):
        raise BadInput(f"Expected providers to be a dict from names to providers; got {shown(others)}.")
    for name, other in others.items():
        check_provider_name(name)
        check_provider(other, f"providers[{name!r}]")
    built_in: tuple[Provider, ...] = (OfflineProvider(), AnthropicProvider(), OpenAIProvider())
    configured = configured or Configuration()
    made = {name: make() for name, make in configured.classes.items() if name not in others}
    registered = {**{built.name: built for built in built_in}, **configured.providers, **made, **others}
    nobody_asked = provider is None and not configured.model and usual_provider() == OfflineProvider.name
    if provider is None:
        provider = configured.model or usual_provider()
    if not isinstance(provider, str):
        check_provider(provider, "provider")
        _check_limits(limits, {*registered, provider.name})
        return Providers({**registered, provider.name: provider}, provider.name, settings, configured, limits)
    _check_limits(limits, registered)
    if not models_in(provider):
        raise BadInput(f"Expected provider to name one, as 'anthropic' or 'anthropic:model'; got {shown(provider)}.")
    for model in models_in(provider):
        name = model.partition(":")[0]
        if name not in registered and (plugin := installed(name)) is not None:
            registered[name] = plugin
        if name not in registered:
            meant = "" if ":" in model else f" A model is named with its provider, as anthropic:{name}."
            raise BadInput(f"There is no provider {name!r}; expected one of {_listed(registered)}.{meant}")
    return Providers(registered, provider, settings, configured, limits, nobody_asked)


def _check_limits(limits: object, registered: Collection[str]) -> None:
    if limits is None:
        return
    if not isinstance(limits, Mapping):
        raise BadInput(f"Expected limits to be a dict from providers to Limits(...); got {shown(limits)}.")
    for name, each in limits.items():
        check_type(each, Limits, f"limits[{name!r}]", "Limits(...)")
        if name not in registered and name not in installed_names():
            raise BadInput(f"Expected limits of one of {_listed(registered)}; got limits of {shown(name)}.")


def _listed(registered: Collection[str]) -> str:
    return ", ".join(sorted({*registered, *installed_names()}))
