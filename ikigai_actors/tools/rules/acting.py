"""The rules in force for the acting agent, for a tool whose result shows more files than its call names."""

from contextvars import ContextVar

from ikigai_actors.tools.rules.rule import Rules

acting_rules: ContextVar[Rules] = ContextVar("acting_rules", default=())
"""The rules that were in force when the call in this context began."""
