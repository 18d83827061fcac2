"""The turn of an agent as a pure step function."""
