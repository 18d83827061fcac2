"""Bad input: what is typed, sent, stored, answered or found in a database may be anything, and every refusal is ours.

    hostile.py      the texts and values that are tried, and how many
    shells.py       the shell in line mode on a system in memory, and all that it prints
    test_*.py       one file for each surface

As part of the tests each property tries a few examples, always the same. ``python -m tests.fuzz --examples 2000`` tries
that many, new ones each time; ``--surface streams`` those of one file.
"""
