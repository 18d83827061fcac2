"""The file ``ikigai.toml``: the providers, the default model, the prices of models and the sizes of their windows.

    model = "local:qwen3:8b, anthropic:claude-sonnet-5-5"    # of agents that have not set one

    [providers.local]
    base_url = "http://127.0.0.1:11434/v1"
    protocol = "chat"            # or "messages", "responses"; without it by the address: chat if that ends in /v1
    api_key_env = "LOCAL_KEY"    # the variable that has the key; none is sent without it
    model = "qwen3:8b"           # of agents that name no model; also max_tokens, timeout
    in_flight = 4                # the limits of all agents together (see `limits`)
    requests_per_minute = 60

    [providers.anthropic]        # one that is there without an address: what is set here counts
    in_flight = 8

    [providers.mine]             # a class, or a function that makes a provider (see `named`)
    class = "shop.models:Mine"   # left out where an installed package offers the provider under this name
    arguments = { region = "eu" }

    [prices."local:qwen3:8b"]    # as in prices.toml
    input = 0.1
    output = 0.2

    [windows]
    "local:qwen3:8b" = 32768     # tokens

The file never contains keys themselves. A mistake is a `BadInput` that names the file, the place and what was expected.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput, ProviderError
from ikigai_actors.providers.address import is_address
from ikigai_actors.providers.anthropic import AnthropicProvider
from ikigai_actors.providers.base import OnDelta, Provider, Reply, Request
from ikigai_actors.providers.limits import Limits
from ikigai_actors.providers.named import installed, installed_names, named_provider
from ikigai_actors.providers.openai import CHAT, RESPONSES, OpenAIProvider
from ikigai_actors.providers.prices import Price, read_price

MESSAGES = "messages"
PROTOCOLS = (MESSAGES, CHAT, RESPONSES)
_NO_KEY = "none"
"""The key for servers that need none: clients insist on one."""
_NATIVE = {AnthropicProvider.name: MESSAGES, OpenAIProvider.name: RESPONSES}
"""The providers that need no address, each with its protocol."""
_LIMITS = {"in_flight": int, "requests_per_minute": int}
_OF_A_PROVIDER: Mapping[str, type | tuple[type, ...]] = {
    "base_url": str,
    "protocol": str,
    "api_key_env": str,
    "model": str,
    "max_tokens": int,
    "timeout": (int, float),
    **_LIMITS,
}
_OF_A_CLASS: Mapping[str, type | tuple[type, ...]] = {"class": str, "arguments": dict, **_LIMITS}
_HINT = 'A name with a colon or a dot needs quotes, as [prices."local:qwen3:8b"].'


@dataclass(frozen=True, slots=True)
class Configuration:
    """The contents of a configuration file."""

    source: str = ""
    """The path of the file; empty if there is none."""
    model: str = ""
    """The model of agents without a ``model`` setting; empty if the file names none."""
    providers: Mapping[str, Provider] = field(default_factory=dict)
    classes: Mapping[str, Callable[[], Provider]] = field(default_factory=dict)
    """Functions that make the providers with a ``class``, by name. They raise `BadInput` if that fails."""
    limits: Mapping[str, Limits] = field(default_factory=dict)
    """The limits by name of the provider."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """The prices by the service's name of the model."""
    windows: Mapping[str, int] = field(default_factory=dict)
    """Tokens that a model takes, by ``provider:model``."""


class Unready:
    """A provider that answers each request with an error, because something that it needs is missing here."""

    def __init__(self, name: str, why: str) -> None:
        self.name, self._why = name, why

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Raise `ProviderError` with the reason why the provider cannot be used."""
        raise ProviderError(self._why, unavailable=True)

    async def close(self) -> None:
        """Do nothing."""


def read_configuration(path: Path, environ: Mapping[str, str] = os.environ) -> Configuration:
    """Read a configuration file. Raises `BadInput` if it is missing or malformed."""
    try:
        text = path.read_bytes().decode("utf-8-sig")  # editors on Windows put a mark before it
    except OSError as error:
        raise BadInput(f"The configuration {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"Expected {path} to be UTF-8 text: {error}. Save it as UTF-8.") from error
    return parse_configuration(text, str(path), environ)


def parse_configuration(text: str, source: str, environ: Mapping[str, str]) -> Configuration:
    """Parse the text of a file.

    Args:
        source: the name of the file in errors.
        environ: the environment variables with the keys.

    Raises:
        BadInput: the text is no valid ``ikigai.toml``.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"Expected {source} to be TOML: {error}. {_HINT}") from error
    except RecursionError as error:
        raise BadInput(f"Expected {source} to be TOML: it is nested too deep.") from error
    file = _File(source)
    known = {"model": str, "providers": dict, "prices": dict, "windows": dict}
    file.check("", tables, known)
    named = tables.get("providers", {})
    for name in named:
        if not name.strip() or name != name.strip() or ":" in name or "," in name:
            file.refuse(f"providers.{name!r}", "a name without colons, commas and blanks at its ends", name)
        file.check(f"providers.{name}", named[name], {**_OF_A_PROVIDER, **_OF_A_CLASS})
    windows = tables.get("windows", {})
    file.check("windows", windows, dict.fromkeys(windows, int))
    for model, tokens in windows.items():
        if tokens < 1:
            file.refuse(f"windows.{model!r}", "a number of tokens", tokens)
    prices = {
        _of_the_service(name, named): _price(source, name, table) for name, table in tables.get("prices", {}).items()
    }
    classes = {name: _of_a_class(file, name, table) for name, table in named.items() if _is_of_a_class(name, table)}
    return Configuration(
        source,
        tables.get("model", ""),
        {name: _provider(file, name, table, environ) for name, table in named.items() if name not in classes},
        classes,
        {name: limits for name, table in named.items() if (limits := _limits(file, name, table))},
        prices,
        windows,
    )


def endpoint(name: str, base_url: str, protocol: str = "", api_key: str = "", **options: Any) -> Provider:
    """Return a provider for the service at an address.

    Args:
        name: the provider's name.
        protocol: one of `PROTOCOLS`; empty chooses by the address: chat completions if that ends in ``/v1``.
        api_key: the key; a placeholder when there is none.
        options: further arguments of the provider.

    Raises:
        BadInput: an argument cannot be used.
    """
    speaks = protocol or (CHAT if base_url.rstrip("/").endswith("/v1") else MESSAGES)
    arguments = {"base_url": base_url, "api_key": api_key or _NO_KEY, **options}
    made: Provider = AnthropicProvider(**arguments) if speaks == MESSAGES else OpenAIProvider(api=speaks, **arguments)
    made.name = name
    return made


class _File:
    """Checks of one configuration file. The errors name the file."""

    def __init__(self, source: str) -> None:
        self.source = source

    def refuse(self, place: str, expected: str, got: object) -> NoReturn:
        raise BadInput(f"Expected {place} in {self.source} to be {expected}; got {shown(got)}.")

    def check(self, place: str, table: object, known: Mapping[str, type | tuple[type, ...]]) -> None:
        if not isinstance(table, dict):
            self.refuse(place, "a table", table)
        for name, value in table.items():
            path = f"{place}.{name}" if place else name
            if name not in known:
                there = ", ".join(known)
                raise BadInput(f"There is no {path} in an ikigai.toml ({self.source}); expected {there}. {_HINT}")
            if not isinstance(value, known[name]) or isinstance(value, bool):
                self.refuse(path, _WORDS[known[name]], value)


_WORDS: Mapping[Any, str] = {str: "text", int: "a whole number", (int, float): "a number", dict: "a table"}


def _provider(file: _File, name: str, table: Mapping[str, Any], environ: Mapping[str, str]) -> Provider:
    place = f"providers.{name}"
    options = {key: value for key, value in table.items() if key not in ("protocol", "api_key_env", *_LIMITS)}
    protocol, variable = table.get("protocol", ""), table.get("api_key_env", "")
    if protocol and protocol not in PROTOCOLS:
        file.refuse(f"{place}.protocol", f"one of {', '.join(PROTOCOLS)}", protocol)
    if "base_url" in table and not is_address(table["base_url"]):
        file.refuse(f"{place}.base_url", "an address, https://… or http://…", table["base_url"])
    if variable and not environ.get(variable):
        return Unready(name, f"The key of provider {name} is missing: set {variable}, as {file.source} says.")
    make: Callable[..., Provider] = endpoint
    if "base_url" not in table:
        speaks = protocol or _NATIVE[name]
        if (speaks == MESSAGES) is not (name == AnthropicProvider.name):
            file.refuse(f"{place}.protocol", "left out where there is no base_url", protocol)
        make = AnthropicProvider if speaks == MESSAGES else OpenAIProvider
        options |= {"api_key": environ[variable]} if variable else {}
        options |= {"api": protocol} if protocol and speaks != MESSAGES else {}
    else:
        options |= {"name": name, "protocol": protocol, "api_key": environ[variable] if variable else ""}
    try:
        return make(**options)
    except BadInput as error:
        raise BadInput(f"{place} in {file.source}: {error}") from error


def _is_of_a_class(name: str, table: Mapping[str, Any]) -> bool:
    return not table.keys().isdisjoint(("class", "arguments")) or ("base_url" not in table and name not in _NATIVE)


def _of_a_class(file: _File, name: str, table: Mapping[str, Any]) -> Callable[[], Provider]:
    """Return the function that makes a provider of the class that the file names, or of an installed package."""
    place, arguments = f"providers.{name}", table.get("arguments", {})
    if "class" in table:
        file.check(place, table, _OF_A_CLASS)
        return partial(named_provider, table["class"], f"{place}.class in {file.source}", arguments)
    if not table.keys() <= _OF_A_CLASS.keys() or name not in installed_names():
        file.refuse(place, "a table with a base_url, or a class", dict(table))

    def make() -> Provider:
        try:
            provider = installed(name, arguments)
        except BadInput as error:
            raise BadInput(f"{place} in {file.source}: {error}") from error
        assert provider is not None  # as above
        return provider

    return make


def _limits(file: _File, name: str, table: Mapping[str, Any]) -> Limits:
    try:
        return Limits(**{key: table[key] for key in _LIMITS if key in table})
    except BadInput as error:
        raise BadInput(f"providers.{name} in {file.source}: {error}") from error


def _price(source: str, model: str, table: object) -> Price:
    try:
        return read_price(source, f"prices.{model!r}", table)
    except BadInput as error:
        raise BadInput(f"{error} {_HINT}") from error


def _of_the_service(model: str, providers: Mapping[str, Any]) -> str:
    """Return the service's name for a model: without the prefix ``provider:``. Tokens are counted under that name."""
    provider, colon, within = model.partition(":")
    return within if colon and within and (provider in providers or provider in _NATIVE) else model
