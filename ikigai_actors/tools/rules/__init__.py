"""Rules: decide which calls of tools run, which need approval, and which are denied.

`rule` applies rules to a call; `commands` parses commands of bash as bash does; `acting` has the rules for a running
tool.
"""
