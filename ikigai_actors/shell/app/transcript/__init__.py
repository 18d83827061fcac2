"""The transcript of an agent, as a widget."""
