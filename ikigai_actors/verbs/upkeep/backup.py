"""The backup of a database."""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from typing import NamedTuple

from ikigai_actors.records.fsck.check import Report, inspect
from ikigai_actors.store.existing import open_existing
from ikigai_actors.store.migrations import newest, require_ours, schema_version
from ikigai_actors.store.sqlite.backup import as_target, back_up
from ikigai_actors.verbs.text.harmless import harmless
from ikigai_actors.verbs.upkeep.fsck import as_lines
from ikigai_actors.verbs.upkeep.progress import no_line


class Backup(NamedTuple):
    """The outcome of a backup: the lines for a person, and whether the backup is sound."""

    lines: list[str]
    """The lines for a person."""
    sound: bool
    """Whether the backup is sound. False if a violation was copied."""


def make(database: str | None, file: str, line: Callable[[str], AbstractContextManager[None]] = no_line) -> Backup:
    """Back up a database of any version to a new file, and check the copy if this program knows the version.

    ``line`` shows the present step while its block runs. Raises the errors of `open_existing`, `as_target` and
    `back_up`.
    """
    target = as_target(file)
    with closing(open_existing(database, require_ours)) as store:
        version, known = schema_version(store), newest()
        with line(harmless(f"Backing up {store.location}")):
            report: Report | None = back_up(store, target, inspect if version == known else lambda copy: None)
        lines = [f"Backed {store.location} up to {target}."]
    if report is None:
        return Backup([*lines, f"It has version {version}, and this ikigai knows {known}: it was not checked."], True)
    return Backup([*lines, *as_lines(report)], not report.violations)
