"""The texts that people read.

The package exports the names that verbs use, and imports a module only when one of its names is used.
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
