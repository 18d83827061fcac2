"""Budgets: how much agents may spend, how much is left, and how much was spent on whose account."""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
