"""Budgets: what agents may spend, what is left of that, and what was spent on whose account."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
