"""The check of a database by fsck, with its result as lines and as JSON."""

from dataclasses import asdict

from ikigai_actors.records.fsck.check import Report, inspect
from ikigai_actors.store.existing import existing
from ikigai_actors.verbs.text.harmless import as_json, one_line


def examine(database: str | None) -> Report:
    """Check an existing database, and return the report. Raises the errors of `existing`."""
    with existing(database) as store:
        return inspect(store)


def as_lines(report: Report) -> list[str]:
    """Return a line for each violation and each note, and a summary."""
    summary = ", ".join((_count(report.agents, "agent"), _count(report.messages, "message")))
    lines = [one_line(f"{each.invariant}: {each.agent or 'database'}: {each.text}") for each in report.violations]
    lines += [one_line(f"note: {each.agent}: {each.text}") for each in report.notes]
    return [*lines, f"{summary}: {_count(len(report.violations), 'violation')}"]


def report_as_json(report: Report) -> str:
    """Return the report as a JSON object: ``agents``, ``messages``, ``violations``; ``notes`` if there are any."""
    fields = asdict(report)
    return as_json(fields if report.notes else {key: fields[key] for key in fields if key != "notes"}, indent=2)


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number <= 1 else 's'}"
