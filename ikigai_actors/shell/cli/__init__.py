"""The ``ikigai`` program: its options and subcommands."""
