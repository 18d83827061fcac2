"""Events: the types that subscribers, feeds and an `Instrument` receive."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
