"""Tests of `ikigai_actors.verbs.text`."""
