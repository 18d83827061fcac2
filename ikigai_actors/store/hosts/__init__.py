"""Hosts: which process may run the agents of a database, and which of several runs which."""
