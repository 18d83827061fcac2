"""Rules: which calls of tools run, which are asked about, and which are denied.

`rule` decides on a call by rules that the caller has read, and `commands` reads commands of bash as bash does. `acting`
has the rules for a tool that runs.
"""
