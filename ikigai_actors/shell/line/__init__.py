"""The shell in line mode."""
