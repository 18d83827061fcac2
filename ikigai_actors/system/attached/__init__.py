"""A system that another process runs, seen and used from here."""
