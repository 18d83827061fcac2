"""The shell in line mode, at a terminal or by a pipe."""
