"""What can be asked of agents, by people, scripts and programs. A subject has a module."""
