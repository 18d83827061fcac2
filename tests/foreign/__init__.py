"""Checkers that know nothing of the runtime, and share no code with it."""
