"""The copy of a database."""

from typing import NamedTuple

from ikigai_actors.records.fsck.check import inspect
from ikigai_actors.store import open_store
from ikigai_actors.store.copy import copy_database
from ikigai_actors.store.existing import existing
from ikigai_actors.store.hosts.rows import owner
from ikigai_actors.verbs.upkeep.fsck import as_lines
from ikigai_actors.verbs.upkeep.progress import Bar, no_bar

_SHOWN = {"agents": "agents", "messages": "messages", "mail": "mails", "documents": "versions of documents"}


class Transfer(NamedTuple):
    """The outcome of a copy: the lines for a person, and whether the copy is sound."""

    lines: list[str]
    """The report as lines for people."""
    sound: bool
    """Whether the copy is sound. False if a violation was copied."""


def copy_to(source: str, target: str, bar: Bar = no_bar) -> Transfer:
    """Copy an existing database to an empty one, and check it; ``bar`` shows the progress.

    Raises the errors of `existing` and `copy_database`.
    """
    with existing(source) as original:
        copy = open_store(target)
        try:
            with bar("rows") as advance:
                counts = copy_database(original, copy, advance)
            report = inspect(copy)
            host = original.read(owner)
        finally:
            copy.close()
    counted = ", ".join(f"{counts[table]} {noun}" for table, noun in _SHOWN.items())
    lines = [f"Copied {counted} from {original.location} to {copy.location}: every row is the same."]
    if host is not None:
        lines.append("The original is in use: what is committed there from now on is not in the copy.")
    return Transfer([*lines, *as_lines(report)], not report.violations)
