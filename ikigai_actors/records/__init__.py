"""What the database says: one module for each of its tables, and fsck."""
