"""Events: the types that subscribers and feeds receive, and those that an `Instrument` receives."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
