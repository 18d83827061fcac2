"""The talk with an agent, as a widget."""
