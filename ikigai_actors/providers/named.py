"""Providers by name: those that installed packages offer, and objects that a person names as ``MODULE:NAME``.

    installed("acme")                       # the entry point acme of the group ikigai_actors.providers
    named_provider("shop.models:Clerk", "--provider")

A package offers one in its ``pyproject.toml``:

    [project.entry-points."ikigai_actors.providers"]
    acme = "acme.ikigai:AcmeProvider"

The name is that of a class or a function, which is called, or of a provider. Every exception of such code, even
`SystemExit`, becomes a `BadInput` with the name and the reason.
"""

import importlib
import inspect
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.base import Provider
from ikigai_actors.text import described

GROUP = "ikigai_actors.providers"
"""The group of entry points by which a package offers providers."""


def imported(reference: str, what: str, names: str = "NAME", example: str = "app") -> Any:
    """Import the object that a person named as ``MODULE:NAME``; modules of the current directory are found.

    Args:
        what: the name of the setting in the error.
        names: a word for the object, for the error.
        example: the name of such an object, for the error.

    Raises:
        BadInput: there is no such object, or its module cannot be imported.
    """
    module, colon, name = reference.partition(":")
    if not (module and colon and name):
        raise BadInput(f"Expected {what} MODULE:{names}, got {reference!r}. For one: shop.agents:{example}")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        attribute: Any = importlib.import_module(module)
        for part in name.split("."):
            attribute = getattr(attribute, part)
    except (Exception, SystemExit) as error:  # whatever the module does
        raise _unusable(what, reference, "imported", error) from error
    return attribute


def named_provider(reference: str, what: str, arguments: Mapping[str, Any] | None = None) -> Provider:
    """Return the provider that a person named as ``MODULE:NAME``: a class, a function that makes one, or a provider.

    Args:
        what: the name of the setting in the error.
        arguments: keywords for the class or function.

    Raises:
        BadInput: there is no such provider, or it cannot be made.
    """
    return _made(imported(reference, what, "CLASS", "Clerk"), what, reference, arguments or {})


def installed_names() -> set[str]:
    """Return the names of the providers that installed packages offer."""
    return {point.name for point in entry_points(group=GROUP)}


def installed(name: str, arguments: Mapping[str, Any] | None = None) -> Provider | None:
    """Return the provider that an installed package offers under this name; None if none does.

    Raises `BadInput` when it cannot be made, or two packages offer it.
    """
    points = {(point.value, _package(point)): point for point in entry_points(group=GROUP, name=name)}
    if not points:
        return None
    if len(points) > 1:
        packages = " and ".join(sorted(_package(point) for point in points.values()))
        raise BadInput(f"Provider {name!r} is offered by {packages}. Uninstall one, or name the class by MODULE:CLASS.")
    [(reference, package)] = points
    what = f"Provider {name!r} of package {package}"
    try:
        target = points[reference, package].load()
    except (Exception, SystemExit) as error:  # whatever the package does
        raise _unusable(what, reference, "imported", error) from error
    return _made(target, what, reference, arguments or {})


def check_provider_name(name: object) -> None:
    """Raise `BadInput` if the name cannot be the first half of ``name:model``."""
    if not isinstance(name, str) or not name.strip() or name != name.strip() or ":" in name or "," in name:
        raise BadInput(
            f"Expected the name of a provider without colons and commas, for 'name:model' settings; got {shown(name)}."
        )


def check_provider(provider: object, what: str) -> None:
    """Raise `BadInput` if an object is no provider; ``what`` is its name in the error."""
    if inspect.isclass(provider):
        raise BadInput(f"Expected {what} to be a provider; got the class {provider.__name__}. Make one of it: call it.")
    if not _is_provider(provider):
        remedy = " Put a function into FunctionProvider(...)." if callable(provider) else ""
        raise BadInput(
            f"Expected {what} to be a provider, which has a name, respond and close (see Provider); "
            f"got {shown(provider)}.{remedy}"
        )
    check_provider_name(getattr(provider, "name", None))


def _is_provider(candidate: object) -> bool:
    return not inspect.isclass(candidate) and all(
        callable(getattr(candidate, part, None)) for part in ("respond", "close")
    )


def _made(target: Any, what: str, reference: str, arguments: Mapping[str, Any]) -> Provider:
    try:
        is_made = _is_provider(target)
        if inspect.iscoroutinefunction(target):
            raise BadInput(
                f"{what} {reference} is an async function. Name a class, or a function that returns a provider."
            )
        provider: Any = target(**arguments) if callable(target) and not is_made else target
        check_provider(provider, f"{what} {reference}")
    except BadInput:
        raise
    except (Exception, SystemExit) as error:  # whatever the class does
        raise _unusable(what, reference, "made", error) from error
    if is_made and arguments:
        raise BadInput(f"{what} {reference} is a provider already, and takes no arguments. Name its class.")
    made: Provider = provider
    return made


def _package(point: EntryPoint) -> str:
    return "(unknown)" if point.dist is None else point.dist.name


def _unusable(what: str, reference: str, how: str, error: BaseException) -> BadInput:
    return BadInput(f"{what} {reference!r} cannot be {how}: {' '.join(described(error).split())}.")
