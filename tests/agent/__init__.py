"""Tests of `ikigai_actors.agent`."""
