"""Handles: the objects by which a program uses agents and their system.

- ``commands``: every command of an agent, once, as a future; ``outcomes`` is what comes of the larger ones.
- ``readings``: what is read of an agent, once.
- ``ref``: sync and async handles, made of these two, and the system that gives them.
- ``base``: the base of ``commands`` and ``readings``.
"""
