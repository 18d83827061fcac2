"""Skills and instructions on a disk: folders with a ``SKILL.md``, and ``AGENTS.md``, as other programs have them.

Its modules:

    front_matter   the keys before the text of such a file
    folders        the folders of skills below a place, and the files in each
    instructions   the instructions of a project
    allowed_tools  the rules that allow what a skill asks to use
    digests        the digest that identifies a skill
    acting         the skills that the acting agent has loaded
"""
