"""Maintenance of a whole database: a module for each subject, whose functions return lines for a person.

draft, draft_records   an agent that is made of a file of another program, and the records of its import
prices     what models cost, and where that is written
doctor     the fence that holds on this machine
prune      old histories are deleted
copy       a database is copied to another one
backup     and backed up to a file
fsck       the laws that a database keeps are checked
programs   open turns are compared with the programs that are to run them
proof      histories are verified, and checkpoints written
transfer   agents go to files, and come from there
progress   who sees how far it has come
"""
