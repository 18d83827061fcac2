"""Types: the return types of the methods of systems and handles, for annotations."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
