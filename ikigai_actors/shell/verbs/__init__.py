"""The verbs of the shell: what people, scripts and programs have agents do. A subject has a module."""
