"""Decisions about the life and death of agents: pure functions over frozen data, with the standard library alone.

Nothing here knows of models, databases or threads; `ikigai_actors` carries out what is decided here.
"""
