"""Tests of `supervisors`."""
