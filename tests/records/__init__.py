"""Tests of `ikigai_actors.records`."""
