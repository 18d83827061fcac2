"""Tests of `ikigai_actors.shell.app`."""
