"""Hooks: what looks at the calls of models, before and after they run."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
