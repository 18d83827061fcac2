"""Questions: calls that wait for a person; see the modules.

forms       the form of an answer, and whether a value fits it; pure
asked       a question, as a unit asks it; pure
links       signed links to questions; pure
waiting     which calls wait, as the log says; pure
questions   table ``questions``
"""
