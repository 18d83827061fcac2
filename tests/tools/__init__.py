"""Tests of `ikigai_actors.tools`."""
