"""fsck: checks the invariants of a database."""
