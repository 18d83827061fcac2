"""Types: what calls of systems and handles give, for annotations."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
