"""Tests of `ikigai_actors.system`."""
