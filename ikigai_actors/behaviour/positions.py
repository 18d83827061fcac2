"""Where trials begin."""

from collections.abc import Iterator, Mapping
from typing import Any

from ikigai_actors.arguments import check_count
from ikigai_actors.behaviour.plans.plan import GO, Continuation
from ikigai_actors.behaviour.trials import TrialStart
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
    """Where a trial begins that goes on from a position: with a prompt, or with `GO` with what the history ends with.

    Raises `BadInput` when that waits for no answer.
    """
    if continuation is not GO:
        return TrialStart(of, at, str(continuation), settings=settings)
    asked = system.store.read(lambda tx: _asked(tx, of, at))
    if asked is None:
        raise BadInput(
            f"Expected a history that ends with a prompt or with results of calls, to go on with GO; at position {at} "
            f"of {of} nothing waits for an answer."
        )
    return TrialStart(of, at, None, asked, settings, go=True)


def _asked(tx: Transaction, uuid: str, position: int) -> Mapping[str, Any] | None:
    """What a model that goes on from a position is asked for, as the data of a prompt; None when it is not asked."""
    history = StoredHistory(tx, read_lineage(tx, uuid, whole=True))
    is_open = False
    for message in backwards(history, position):
        if message.kind == Kind.ASSISTANT and not is_open:
            return None
        born = message.kind == Kind.FORK and "parent" in message.data and (is_open or "go" in message.data)
        if message.kind == Kind.USER or born:
            return {"output": message.data["output"]} if message.data.get("output") else {}
        is_open = is_open or message.kind in (Kind.TOOL_RESULT, Kind.REPAIR)
    return {} if is_open else None


def backwards(history: StoredHistory, position: int) -> Iterator[Message]:
    """The messages that count up to a position, newest first; read a few at once."""
    for start, end in reversed(history.view(position).visible(position)):
        while end > start:
            low = max(start, end - 16)
            yield from reversed(history.between(low, end))
            end = low
