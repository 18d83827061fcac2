"""Proof that histories are as they were written. The package only reads.

`chain_check` compares hashes with messages from any source; it is pure. `verify` checks a whole database, and
`checkpoint` writes the hashes of all histories to a file, against which they can be verified later.
"""
