"""Questions: calls that wait for a person.

forms       the form of an answer, and whether a value fits it; pure
asked       a question in the form in which a unit asks or closes it; pure
links       signed links to questions; pure
waiting     the calls of an open turn that wait for a person; pure
questions   table ``questions``
"""
