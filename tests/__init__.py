"""The tests of ikigai-actors."""
