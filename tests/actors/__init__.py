"""Tests of `ikigai_actors.actors`."""
