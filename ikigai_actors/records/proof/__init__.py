"""Proof that histories are as they were written. Reads only.

`chain_check` compares hashes with messages from any source; it is pure. `verify` does so for a database, and
`checkpoint` writes the hashes of all histories to a file, against which they can be verified later.
"""
