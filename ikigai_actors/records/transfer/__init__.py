"""Export and import of a branch: a file that holds agents with all that belongs to them."""
