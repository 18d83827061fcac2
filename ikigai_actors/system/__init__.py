"""A running system: opened and closed, its handles, its processes and their supervision."""
