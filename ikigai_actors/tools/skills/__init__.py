"""Skills and instructions on a disk: folders with a ``SKILL.md``, and ``AGENTS.md``, as other programs have them.

Its modules:

    front_matter   the front matter of a Markdown file: the keys before its text
    folders        the folders of skills below a directory, and their files
    instructions   the instructions of a project for every agent that works in it
    allowed_tools  the field ``allowed-tools`` of a skill, as rules that allow calls
    digests        the digest that identifies a skill
    acting         the skills that the acting agent has loaded
"""
