"""Verification of histories, and checkpoints."""

from pathlib import Path

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.arguments import as_path
from ikigai_actors.records.proof.chain_check import Problem
from ikigai_actors.records.proof.checkpoint import read_checkpoint, write_checkpoint
from ikigai_actors.records.proof.verify import Verified
from ikigai_actors.records.transfer.verify import verify_file, verify_named
from ikigai_actors.store.database_clock import clock_of
from ikigai_actors.store.existing import existing
from ikigai_actors.verbs.text.harmless import as_json
from ikigai_actors.verbs.text.words import counted

_SHORT = 6  # characters of a uuid


def examine(database: str | None, what: str | None, since: str | None) -> Verified:
    """Verify the histories of one agent or of all agents of a database, or of a file, which needs no database."""
    if what is not None and Path(what).is_file():
        return verify_file(as_path(what), None if since is None else read_checkpoint(as_path(since)).heads)
    with existing(database) as store:
        return verify_named(store, what, since)


def as_lines(report: Verified) -> list[str]:
    """Return a line for each problem, and a summary."""
    lines = [_line(problem) for problem in report.problems]
    summary = ", ".join((counted(report.agents, "agent"), counted(report.messages, "message")))
    verdict = counted(len(lines), "problem") if lines else "every hash fits"
    notes = [f"{counted(report.pruned, 'agent')} pruned"] if report.pruned else []
    notes += [f"{counted(report.omitted, 'message')} left out"] if report.omitted else []
    return [*lines, f"{summary}: {verdict}{''.join(f'; {note}' for note in notes)}"]


def report_as_json(report: Verified) -> str:
    """Return the result of the verification as a JSON object."""
    problems = [problem._asdict() for problem in report.problems]
    counts = {"agents": report.agents, "messages": report.messages, "pruned": report.pruned, "omitted": report.omitted}
    return as_json({**counts, "problems": problems}, indent=2)


def write(database: str | None, file: str, previous: str | None) -> str:
    """Write a checkpoint of the histories to a new file; return a line for a person."""
    with existing(database) as store:
        now = clock_of(store, SystemClock()).now_ms()
        done = write_checkpoint(store, as_path(file), now, None if previous is None else as_path(previous))
    return f"Wrote the heads of {counted(done.agents, 'log')} to {file}, SHA-256 {done.sha256}"


def _line(problem: Problem) -> str:
    return str(problem._replace(agent=problem.agent[:_SHORT]))
