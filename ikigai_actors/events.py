"""Events: what subscribers and feeds hear, and what an `Instrument` hears."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
