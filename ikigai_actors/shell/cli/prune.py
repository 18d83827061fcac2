"""The deletion of old histories, as a command reports it."""

from pathlib import Path

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.arguments import parse_span
from ikigai_actors.records.agents.trees import forget_trees, pruned_trees
from ikigai_actors.records.log.pruning import Pruned, prunable, prune_logs
from ikigai_actors.shell.cli.progress import progress_bar
from ikigai_actors.shell.text.words import counted
from ikigai_actors.store.base import Store
from ikigai_actors.store.database_clock import clock_of
from ikigai_actors.store.existing import existing
from ikigai_actors.store.hosts.rows import owner
from ikigai_actors.store.location import home
from ikigai_actors.tools.removal import remove_all
from ikigai_actors.tools.trees.places import machine_of, unregister_worktree
from ikigai_actors.tools.trees.tree import WORKTREE


def run(database: str | None, dead_before: str, dry_run: bool, vacuum: bool) -> list[str]:
    """Delete the messages and mail of those who were dead for so long; return lines for a person.

    Args:
        database: its place.
        dead_before: as `parse_span` takes it.
        dry_run: only say what would be deleted.
        vacuum: rewrite an SQLite file afterwards.

    Raises what `existing`, `prune_logs` and `Store.shrink` do, and `BadInput`.
    """
    span = parse_span(dead_before)
    with existing(database) as store:
        now = clock_of(store, SystemClock()).now_ms()
        if dry_run:
            return [_told("Would delete", store.read(lambda tx: prunable(tx, now - span)))]
        with progress_bar("agents") as advance:
            lines = [_told("Deleted", prune_logs(store, now - span, now, advance=advance))]
        _remove_layers(store)
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
    elif before is not None and hosted:
        lines.append("The file shrinks when the process that runs the agents next writes to it.")
    return lines


def _remove_layers(store: Store) -> None:
    """Remove the files of pruned agents, on this machine. The rows go last: what is cut off is done again."""
    trees = home() / "trees"
    if not trees.is_dir():
        return
    machine = machine_of(trees)
    if pruned := store.read(lambda tx: pruned_trees(tx, machine)):
        for tree in pruned:
            if tree.kind == WORKTREE:
                unregister_worktree(Path(tree.base), trees / tree.agent)
            remove_all(trees / tree.agent)
        agents = sorted({tree.agent for tree in pruned})
        store.write(lambda tx: forget_trees(tx, agents, machine))


def _told(what: str, found: Pruned) -> str:
    parts = [counted(found.messages, "message"), counted(found.mails, "mail")]
    if found.blobs:
        parts.append(counted(found.blobs, "attachment"))
    return f"{what} {', '.join(parts)} of {counted(found.agents, 'dead agent')}: about {found.size:,} bytes."


def _size(store: Store) -> int | None:
    """The bytes of a database's file; None when it is none."""
    path = Path(store.location)
    return path.stat().st_size if path.is_file() else None
