"""Proof: whether histories are as they were written. Reads only.

`chain_check` compares hashes with messages, wherever these come from; it is pure.
"""
