"""Lets a package export the names of its modules. A module is imported when one of its names is first used.

    __getattr__, __dir__, __all__ = handed_on(__name__)      # in the __init__.py of a package

The names are only in the stub beside that file (``__init__.pyi``), where type checkers and editors look, too: a
line ``from package.module import name as name`` for each. So a program that uses one name does not import the modules
of the others.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def handed_on(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make the module attributes by which a package exports the names that its stub lists.

    Args:
        package: ``__name__`` of the package.

    Returns:
        Its ``__getattr__``, which imports and keeps a name, its ``__dir__``, which has all names also before they are
        used, and its ``__all__``, sorted.
    """
    module: Any = sys.modules[package]
    stub = module.__spec__.loader.get_data(module.__file__ + "i").decode()
    lines = [line.split() for line in stub.splitlines() if line.startswith("from ")]
    homes = {words[-1]: words[1] for words in lines}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    return find, lambda: sorted({*vars(module), *homes}), sorted(homes)
