"""Tests of `ikigai_actors.testing`."""
