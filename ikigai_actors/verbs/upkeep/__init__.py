"""Maintenance of a whole database: a module for each subject, whose functions return lines for a person.

draft, draft_records   an agent made from a file of another program, and the records of its import
prices     the prices of models, and the files with prices
doctor     the fence that this machine supports
prune      deletes the histories of agents that died long ago
copy       copies a database to another database
backup     backs up a database to a file
fsck       checks the invariants of a database
programs   checks whether programs fit their open turns
proof      verifies histories, and writes checkpoints
transfer   exports agents to files, and imports agents from files
progress   the progress of such work, for callers that show a bar
"""
