"""Hooks: functions and commands that look at the calls, requests, replies, forks and exits of agents."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
