"""Tests of `ikigai_actors.providers`."""
