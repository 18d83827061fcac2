"""The events that outside receivers can get, and the rows for the subscriptions that want them.

    post(tx, locked, PostedEvent("turn.done", agent, position, f"t{turn}", now))

The unit that causes an event calls `post`, so both are committed together. `post` writes a row for each subscription
that wants the event.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows

TURN_DONE, TURN_FAILED, TURN_INTERRUPTED, TURN_STUCK = "turn.done", "turn.failed", "turn.interrupted", "turn.stuck"
QUESTION_ASKED, QUESTION_ANSWERED, QUESTION_EXPIRED = "question.asked", "question.answered", "question.expired"
AGENT_DIED, BUDGET_WAITS = "agent.died", "budget.waits"
ARRIVAL_DEAD, SUBSCRIPTION_PAUSED = "arrival.dead", "subscription.paused"

EVENT_KINDS = (
    TURN_DONE,
    TURN_FAILED,
    TURN_INTERRUPTED,
    TURN_STUCK,
    QUESTION_ASKED,
    QUESTION_ANSWERED,
    QUESTION_EXPIRED,
    AGENT_DIED,
    BUDGET_WAITS,
    ARRIVAL_DEAD,
    SUBSCRIPTION_PAUSED,
)
"""The kinds of events to which a subscription can subscribe."""


class PostedEvent(NamedTuple):
    """An event for outside receivers."""

    kind: str
    """The kind, one of `EVENT_KINDS`."""
    agent: str
    """The uuid of the event's agent."""
    position: int
    """The position of the message that caused it; its time if there is no message."""
    about: str
    """The subject: a turn such as ``t17``, a question, arrival, budget or subscription; empty for none."""
    at: int
    """The time of the event, in milliseconds since 1970 (UTC)."""


def post(tx: Transaction, locked: LockedRows, event: PostedEvent) -> None:
    """Write a delivery of an event for each subscription that wants it, in this transaction.

    Hosts send the deliveries after the commit.
    """
    locked.others.add(event.agent)
    locked.posted = True
    tx.defer(
        "post_event",
        agent=event.agent,
        position=event.position,
        kind=event.kind,
        about=event.about,
        now=event.at,
    )


def check_event_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of events that these names mean. A prefix such as ``turn`` means all its kinds.

    Raises `BadInput`.
    """
    if isinstance(kinds, str) or not kinds:
        raise BadInput(f"Expected kinds of events as a list, such as ['turn.done']; got {shown(kinds)}.")
    chosen: dict[str, None] = {}
    for word in kinds:
        known = [kind for kind in EVENT_KINDS if word in (kind, kind.partition(".")[0])]
        if not known:
            raise BadInput(f"Expected kinds of events among {', '.join(EVENT_KINDS)}; got {shown(word)}.")
        chosen.update(dict.fromkeys(known))
    return tuple(chosen)
