"""Directories of agents that fork with them.

| module | what it knows |
|---|---|
| `tree` | which layers of changes an agent's directory is made of (pure) |
"""
