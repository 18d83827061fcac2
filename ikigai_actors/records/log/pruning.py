"""Pruning: deletes the messages and mail of agents that were dead for long. Their rows in the registry stay.

Only whole logs are deleted, and only those that no other agent needs. The log of an agent with a living or recently
dead descendant is kept. So all descendants of a pruned agent are pruned. Dead agents never fork, so a deleted log is
never needed later. Documents stay, and so does mail that the pruned agents have sent.

The first transaction chooses the agents under the lock of the tree, and marks them (``pruned_at``). From then on
readers get `HistoryPruned`. Further transactions delete the rows, a limited number in each, so that no other
transaction waits long. If a prune is cut off, the next one deletes the remaining rows, which nobody reads. At the end a
prune deletes blobs and definitions of tools to which nothing refers, the bodies of arrivals after 7 days, arrivals and
deliveries that do not wait after 30 days, former values after 30 days, and keyed calls after 30 days, unless the
prompt, turn, timer or child that one names is still open.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.former import prune_former
from ikigai_actors.records.arrivals.arrivals import prune_arrivals
from ikigai_actors.records.batches import prune_batches
from ikigai_actors.records.hosts.builds import prune_definitions
from ikigai_actors.records.log.words import drop_word_index
from ikigai_actors.records.mail.prompts import prompt_times
from ikigai_actors.records.mail.timers import timers_of
from ikigai_actors.records.messages.blobs import drop_unreferenced, unreferenced
from ikigai_actors.records.once import KEPT_MS
from ikigai_actors.records.outbox.deliveries import prune_deliveries
from ikigai_actors.records.outbox.task_subscriptions import end_lost_subscriptions
from ikigai_actors.records.questions.questions import prune_questions
from ikigai_actors.records.uploads import prune_uploads
from ikigai_actors.store.base import Store, Transaction

BATCH = 5_000
"""The most rows that are deleted in one transaction."""

_AGENTS = 500
"""Agents whose rows are looked for together."""

_TABLES = ("messages", "mail", "signals", "restarts", "requests")
"""The parts of an agent that are deleted: each has a statement ``prune_…``."""


class Pruned(NamedTuple):
    """The numbers of rows that were deleted, or would be."""

    agents: int
    """The number of agents whose messages and mail are deleted."""
    messages: int
    mails: int
    """The number of mails to these agents."""
    blobs: int
    """The number of attachments to which nothing else refers."""
    size: int
    """The number of characters of all these texts, plus the bytes of the blobs."""


def prunable(tx: Transaction, before: int) -> Pruned:
    """Return the numbers of rows that a prune would delete now.

    Args:
        before: only agents that died before this time, in milliseconds since 1970.
    """
    uuids = prunable_agents(tx, before)
    [(messages, mails, size)] = tx.run("size_of_logs", uuids=uuids)
    blobs = unreferenced(tx, set(uuids))
    [(bytes_,)] = tx.run("size_of_blobs", hashes=blobs)
    return Pruned(len(uuids), messages, mails, len(blobs), size + bytes_)


def prunable_agents(tx: Transaction, before: int) -> list[str]:
    """Return the uuids of agents whose messages or mail a prune would delete now; ``before`` is as for `prunable`."""
    return [*_due(tx, before), *_left_over(tx)]


def prune_logs(
    store: Store,
    before: int,
    now: int,
    batch: int = BATCH,
    advance: Callable[[int, int], object] = lambda done, total: None,
) -> Pruned:
    """Delete the messages and mail of agents that died long ago and that nobody needs. Hosts may run meanwhile.

    Args:
        before: only agents that died before this time, in milliseconds since 1970.
        now: the time of the prune, in the same unit, which is recorded.
        batch: the most rows that are deleted in one transaction.
        advance: is called with the number of finished agents, and the number of all.

    Returns:
        The numbers of deleted rows, including those that an interrupted earlier prune had left.
    """
    pruned = store.read(lambda tx: prunable(tx, before))
    store.write(lambda tx: _mark(tx, before, now))
    left = store.read(_left_over)
    if left:
        drop_word_index(store)
    for start in range(0, len(left), _AGENTS):
        some = left[start : start + _AGENTS]
        for table in _TABLES:
            while _delete(store, table, some, batch) == batch:
                pass
        advance(start + len(some), len(left))
    if left:
        drop_word_index(store)  # a search has made one meanwhile
    store.write(lambda tx: prune_uploads(tx, now))
    store.write(drop_unreferenced)
    store.write(prune_definitions)
    store.write(lambda tx: prune_arrivals(tx, now))
    store.write(lambda tx: end_lost_subscriptions(tx, now))
    store.write(lambda tx: prune_deliveries(tx, now))
    store.write(lambda tx: prune_batches(tx, now))
    store.write(lambda tx: prune_questions(tx, now))
    _prune_calls(store, now - KEPT_MS)
    store.write(lambda tx: prune_former(tx, now))
    return pruned


def _due(tx: Transaction, before: int) -> list[str]:
    return [uuid for (uuid,) in tx.run("prunable", before=before)]


def _left_over(tx: Transaction) -> list[str]:
    return [uuid for (uuid,) in tx.run("half_pruned")]


def _mark(tx: Transaction, before: int, now: int) -> None:
    tx.run("tree_change")  # nobody is born or dies meanwhile
    if uuids := _due(tx, before):
        tx.run("lock_agents", uuids=uuids, writers=[])
        tx.run("mark_pruned", uuids=uuids, now=now)
        tx.run("forget_asked", agents=uuids)


def _delete(store: Store, table: str, uuids: Sequence[str], most: int) -> int:
    return store.write(lambda tx: len(tx.run(f"prune_{table}", uuids=uuids, most=most)))


def _prune_calls(store: Store, before: int) -> None:
    """Delete the keyed calls from before a time, except those that name an open prompt, turn, timer or child."""
    old = store.read(lambda tx: tx.run("old_calls", before=before))

    def prune(tx: Transaction, some: Sequence[tuple[str, str, str | None, str]]) -> None:
        for scope, key, agent, gave in some:
            if not _is_open(tx, agent, json.loads(gave)):
                tx.run("release_call", scope=scope, key=key)

    for start in range(0, len(old), _AGENTS):
        store.write(partial(prune, some=old[start : start + _AGENTS]))


def _is_open(tx: Transaction, agent: str | None, gave: Mapping[str, Any]) -> bool:
    """Return whether a turn, timer or child that was the result of a keyed call still exists."""
    if agent is None:
        return False
    if (mail := gave.get("mail")) is not None:
        times = prompt_times(tx, agent, mail)
        record = next(iter(registry.some(tx, [agent])), None)
        unread = times is not None and times.read_at is None
        return record is not None and record.living and (unread or record.turn > 0)
    if (timer := gave.get("timer")) is not None:
        return any(due.id == timer[1] for due in timers_of(tx, timer[0]))
    return any(record.living for record in registry.some(tx, gave.get("children", ())))
