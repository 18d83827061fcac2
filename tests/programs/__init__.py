"""Programs: agents that are functions."""
