"""Whether a version can be tagged: version, changelog, schema and tag agree. Pure."""

import re
from typing import NamedTuple

FIRST_RELEASED = 100
"""The version of the schema with release 0.1.0; those below belong to commits before it."""


class Tree(NamedTuple):
    """What a commit says about its release."""

    version: str
    """That of ``pyproject.toml``."""
    changelog: str
    first: int
    """The oldest version of the schema that is opened."""
    newest: int
    """That of a new database."""
    schema: str
    """The text of ``schema.sql``."""
    released: dict[int, str]
    """The texts of ``schema.sql`` that were released, by version."""
    repository: str
    """Where the project lies, as ``[project.urls]`` says; empty while no page of it names a place."""


def problems(tree: Tree, tag: str) -> list[str]:
    """Why this tree is not the release of this tag; empty when it is."""
    complaints = []
    if tag != f"v{tree.version}":
        complaints.append(f"The tag is {tag}, and pyproject.toml has version {tree.version}.")
    if not re.search(rf"^## {re.escape(tree.version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)$", tree.changelog, re.M):
        complaints.append(f"CHANGELOG.md has no section '## {tree.version} (YYYY-MM-DD)'.")
    if not tree.repository.startswith("https://"):
        complaints.append("pyproject.toml has no Repository in [project.urls]: name the address of this repository.")
    if tree.first != FIRST_RELEASED:
        complaints.append(f"FIRST of store/migrations.py is {tree.first}: run 'python -m tests.release schema'.")
    if tree.released.get(tree.newest) != tree.schema:
        complaints.append(f"The schema of version {tree.newest} is not kept: run 'python -m tests.release schema'.")
    return complaints
