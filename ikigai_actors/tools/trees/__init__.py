"""Directories of agents that fork with them.

| module | what it knows |
|---|---|
| `tree` | which layers of changes an agent's directory is made of (pure) |
| `places` | where these are on this machine |
| `layers` | what a directory shows through layers, without a mount |
| `repositories` | what a merge does with git |
| `flat` | many layers as one |
| `merge` | what a merge changes, and how that is written |
"""
