"""The texts that a person reads. The package hands on the names that verbs use, without importing their modules."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
