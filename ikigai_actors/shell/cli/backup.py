"""The backup of a database, as a command reports it."""

from typing import NamedTuple

from ikigai_actors.records.fsck.check import Report, inspect
from ikigai_actors.shell.cli.fsck import as_lines
from ikigai_actors.shell.cli.progress import progress_line
from ikigai_actors.shell.text.harmless import harmless
from ikigai_actors.store.existing import existing
from ikigai_actors.store.sqlite.backup import as_target, back_up


class Backup(NamedTuple):
    """The report of a backup."""

    lines: list[str]
    """For a person."""
    sound: bool
    """Whether the backup keeps what it must: a violation was copied with the rest."""


def make(database: str | None, file: str) -> Backup:
    """Back a database up to a new file, and check that. Raises what `existing`, `as_target` and `back_up` do."""
    target = as_target(file)
    with existing(database) as store:
        with progress_line(harmless(f"Backing up {store.location}")):
            report: Report = back_up(store, target, inspect)
        lines = [f"Backed {store.location} up to {target}.", *as_lines(report)]
    return Backup(lines, not report.violations)
