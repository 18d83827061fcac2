"""The checks of fsck for the cuts of histories: by summaries, and by forks at an earlier position.

The check computes the views of each agent with own summaries from its control messages, and reads the messages where a
history is cut.
"""

from collections.abc import Iterable, Iterator

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.log.boundaries import is_boundary
from ikigai_actors.records.log.history import EMPTY, View, play
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.base import Transaction


def check_lenses(tx: Transaction, agents: Iterable[str]) -> Iterator[Violation]:
    """Return the faults of the summaries of these agents, whose logs are sound."""
    for uuid in agents:
        history = StoredHistory(tx, read_lineage(tx, uuid, whole=True))
        view = EMPTY
        for message in history.controls():
            if message.agent_uuid == uuid and message.kind == Kind.SUMMARY:
                yield from (
                    Violation(Invariant.SUMMARY, uuid, f"expected message {message.id}, a summary, {wrong}")
                    for wrong in _wrong_summary(history, view, message)
                )
            elif message.agent_uuid == uuid and message.kind == Kind.UNCOMPACT:
                in_force, taken_off = f"the one at {view.lens.id}" if view.lens else "none", message.data.get("summary")
                if view.lens is None or taken_off != view.lens.id:
                    text = (
                        f"expected message {message.id} to name the summary in force ({in_force}); it names {taken_off}"
                    )
                    yield Violation(Invariant.UNCOMPACT, uuid, text)
            view = play(view, message)


def check_fork_points(tx: Transaction, agents: Iterable[AgentRecord]) -> Iterator[Violation]:
    """Return a fault for each of these agents that was forked within a step. All were forked at an earlier position."""
    for agent in agents:
        parent = StoredHistory(tx, read_lineage(tx, agent.parent_uuid or "", whole=True))
        if not is_boundary(parent.between, agent.fork_message_id):
            text = f"expected its fork point to be outside of any step; {agent.fork_message_id} is within one"
            yield Violation(Invariant.FORK_AT, agent.uuid, text)


def _wrong_summary(history: StoredHistory, view: View, message: Message) -> Iterator[str]:
    keep_from, prompt, elide = (message.data.get(name, 0) for name in ("keep_from", "prompt", "elide"))
    if not 0 <= elide <= message.id:
        yield f"to elide before a position up to its own, got {elide}"
    if not message.content:
        return
    lowest = max(1, view.lens.keep_from if view.lens is not None else 1, view.visible(message.id)[0][0] + 1)
    if not lowest <= keep_from <= message.id:
        yield f"to keep from a position between {lowest} and its own, got {keep_from}"
    elif not is_boundary(history.between, keep_from - 1):
        yield f"to keep whole steps; a step goes on past {keep_from}"
    if prompt and not (prompt < keep_from and view.shows(prompt, message.id) and _is_prompt(history, prompt)):
        yield f"to show a prompt that counts and comes before {keep_from}; at {prompt} there is none"


def _is_prompt(history: StoredHistory, position: int) -> bool:
    return any(message.kind == Kind.USER for message in history.between(position - 1, position))
