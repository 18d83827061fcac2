"""SQLite: the embedded database, one file."""
