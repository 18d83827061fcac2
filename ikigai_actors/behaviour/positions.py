"""Where trials begin."""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.arguments import check_count
from ikigai_actors.behaviour.experiment import TrialStart
from ikigai_actors.behaviour.plans.plan import GO, Continuation
from ikigai_actors.errors import BadInput
from ikigai_actors.records.heads import heads_of
from ikigai_actors.records.lineage import read_lineage
from ikigai_actors.records.messages import Kind, Message
from ikigai_actors.records.stored_history import StoredHistory
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.ref import System


def position(system: System, uuid: str, at: int | None) -> int:
    """The position at which trials fork, once it is sure that they may. Raises `NotABoundary` and `HistoryPruned`."""
    if at is None:
        heads = system.store.read(lambda tx: heads_of(tx, [uuid]))
        at = heads[0].position if heads else 0
    check_count(at, "at")
    system.log_cache.settings_at(uuid, at)
    return at


def started(system: System, of: str, at: int, continuation: Continuation, settings: Mapping[str, Any]) -> TrialStart:
    """Where a trial begins that goes on from a position with a prompt; with `GO`, with the prompt that ends there."""
    if continuation is not GO:
        return TrialStart(of, at, str(continuation), settings=settings)
    prompt = system.store.read(lambda tx: _message_at(tx, of, at))
    if prompt is None or prompt.kind != Kind.USER:
        raise BadInput(f"Expected a history that ends with a prompt, to go on with GO; position {at} of {of} is none.")
    return TrialStart(of, at - 1, prompt.content, prompt.data, settings)


def _message_at(tx: Transaction, uuid: str, position: int) -> Message | None:
    history = StoredHistory(tx, read_lineage(tx, uuid, whole=True))
    return next(iter(history.between(position - 1, position)), None)
