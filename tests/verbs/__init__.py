"""Verbs: one declaration, four places."""
