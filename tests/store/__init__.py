"""Tests of `ikigai_actors.store`."""
