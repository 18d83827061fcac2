"""The rules in force for the acting agent, for a tool that shows more than its call names."""

from contextvars import ContextVar

from ikigai_actors.tools.rules.rule import Rules

acting_rules: ContextVar[Rules] = ContextVar("acting_rules", default=())
"""The rules with which the call began that runs in this context."""
