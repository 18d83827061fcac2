"""A driver for each runtime: a program that runs the task as that runtime's own documentation advises.

Beside ``NAME.py`` stand ``NAME.txt``, the pinned packages of its environment, and ``NAME.md``, the pages that it
follows.
Lines that a user writes so that runs go on after a crash are marked ``# resume:``, and the report counts them.
"""
