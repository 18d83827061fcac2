"""Hooks: functions and commands that look at the calls of models, before and after the calls run."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
