"""Directories whose files fork together with the agents.

Its modules:

    tree          the layers of changes of which an agent's directory is made (pure)
    places        the directories of the layers on this machine, and the order of their mounts
    layers        reads a directory through layers, without a mount
    repositories  merges of git repositories
    flat          combines many layers into one
    merge         plans and writes a merge
"""
