"""Skills on a disk: folders with a ``SKILL.md``, as other programs have them.

Its modules:

    front_matter   the keys before the text of such a file
    folders        the folders of skills below a place, and the files in each
    digests        the digest by which one is known
"""
