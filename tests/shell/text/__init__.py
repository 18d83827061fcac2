"""Tests of `ikigai_actors.shell.text`."""
