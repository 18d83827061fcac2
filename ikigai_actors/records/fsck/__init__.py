"""fsck: what must hold of a database, checked."""
