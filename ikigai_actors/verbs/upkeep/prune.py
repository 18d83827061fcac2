"""Deletes the messages, mail and files of agents that died long ago."""

from pathlib import Path

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.arguments import parse_span
from ikigai_actors.records.agents.trees import forget_trees, pruned_trees, trees_of_agents
from ikigai_actors.records.log.pruning import Pruned, prunable, prunable_agents, prune_logs
from ikigai_actors.store.base import Store
from ikigai_actors.store.database_clock import clock_of
from ikigai_actors.store.existing import existing
from ikigai_actors.store.hosts.rows import owner
from ikigai_actors.store.location import home
from ikigai_actors.tools.trees.places import machine_of
from ikigai_actors.tools.workspace.pruned_files import holdings, remove_files
from ikigai_actors.verbs.text.words import counted
from ikigai_actors.verbs.upkeep.progress import Bar, no_bar


def prune_database(database: str | None, dead_before: str, dry_run: bool, vacuum: bool, bar: Bar = no_bar) -> list[str]:
    """Delete the messages and mail of agents that have been dead for this long; return lines for a person.

    Args:
        database: the path or URL; None for the default.
        dead_before: as `parse_span` takes it.
        dry_run: only report what would be deleted.
        vacuum: rewrite an SQLite file afterwards.
        bar: shows the number of finished agents.

    Raises what `existing`, `prune_logs` and `Store.shrink` do, and `BadInput`.
    """
    span = parse_span(dead_before)
    with existing(database) as store:
        now = clock_of(store, SystemClock()).now_ms()
        nothing = f"Nothing to delete: no agent died longer than {dead_before} ago that nobody needs."
        if dry_run:
            listing = [*_told("Would delete", store.read(lambda tx: prunable(tx, now - span)))]
            return [*listing, *_would_remove(store, now - span)] or [nothing]
        with bar("agents") as advance:
            lines = _told("Deleted", prune_logs(store, now - span, now, advance=advance))
        lines = [*lines, *_remove_files(store)] or [nothing]
        before, given_back = _size(store), store.shrink(vacuum)
        hosted = store.read(owner) is not None
    after = _size(store)
    if not given_back:
        lines.append(
            "The file keeps its size, and what is written next takes the room: an earlier ikigai made it. When nobody "
            "runs the agents, ikigai prune --vacuum makes it smaller."
        )
    elif before is not None and after is not None and after < before:
        lines.append(f"The file shrank from {before:,} to {after:,} bytes.")
    elif before is not None and hosted and lines != [nothing]:
        lines.append("The file shrinks when the process that runs the agents next writes to it.")
    return lines


def _would_remove(store: Store, before: int) -> list[str]:
    trees = home() / "trees"
    if not trees.is_dir():
        return []
    machine = machine_of(trees)
    due = store.read(lambda tx: trees_of_agents(tx, prunable_agents(tx, before), machine))
    leftovers = holdings(trees, [*due, *store.read(lambda tx: pruned_trees(tx, machine))])
    lines = list[str]()
    if leftovers.worktrees:
        lines.append(
            f"Would remove {counted(leftovers.worktrees, 'worktree')} of git, after what was not committed there is on "
            "a branch."
        )
    if leftovers.layered:
        lines.append(f"Would remove what {counted(leftovers.layered, 'agent')} changed in files, merged or not.")
    return lines


def _remove_files(store: Store) -> list[str]:
    """Remove the files that pruned agents have on this machine, and return lines about them for a person.

    The rows about the files are deleted last. So the next prune repeats a removal that was interrupted.
    """
    trees = home() / "trees"
    if not trees.is_dir():
        return []
    machine = machine_of(trees)
    if not (rows := store.read(lambda tx: pruned_trees(tx, machine))):
        return []
    before = holdings(trees, rows)
    done = remove_files(home(), rows)
    if done.gone:
        store.write(lambda tx: forget_trees(tx, done.gone, machine))
    lines = list[str]()
    if removed := before.worktrees - len(done.left):
        kept = f" What was not committed is on {' and '.join(done.branches)}." if done.branches else ""
        lines.append(f"Removed {counted(removed, 'worktree')} of git.{kept}")
    if before.layered:
        lines.append(f"Removed what {counted(before.layered, 'agent')} changed in files.")
    for place, why in done.left.items():
        lines.append(f"Left the worktree {place}: {why}. Bring that elsewhere or remove it, then prune again.")
    return lines


def _told(what: str, pruned: Pruned) -> list[str]:
    if not pruned.agents:
        return []
    parts = [counted(pruned.messages, "message"), counted(pruned.mails, "mail")]
    if pruned.blobs:
        parts.append(counted(pruned.blobs, "attachment"))
    return [f"{what} {', '.join(parts)} of {counted(pruned.agents, 'dead agent')}: about {pruned.size:,} bytes."]


def _size(store: Store) -> int | None:
    """Return the size of a database's file in bytes; None if the database is not a file."""
    path = Path(store.location)
    return path.stat().st_size if path.is_file() else None
