"""The texts that a person reads."""
