"""A host: runs agents, supervises them, shares them with other hosts, and does what other processes ask by rows."""
