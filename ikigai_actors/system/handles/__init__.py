"""Handles: the objects by which a program uses agents and their system.

- ``commands``: every command of an agent, once, as a future; ``outcomes`` has the results of some of them.
- ``readings``: the methods that read data of an agent, each once.
- ``ref``: sync and async handles, made of ``commands`` and ``readings``, and the system that returns handles.
- ``base``: the base of ``commands`` and ``readings``.
"""
