"""The checks of fsck for subscriptions and deliveries."""

from collections.abc import Iterator

from ikigai_actors.errors import BadInput
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.messages.messages import ENDINGS, Kind
from ikigai_actors.records.outbox.events import (
    EVENT_KINDS,
    QUESTION_ANSWERED,
    QUESTION_ASKED,
    QUESTION_EXPIRED,
    TURN_DONE,
    TURN_FAILED,
    TURN_INTERRUPTED,
    check_event_kinds,
)
from ikigai_actors.records.outbox.subscriptions import SubscriptionSpec
from ikigai_actors.store.base import Transaction

_MESSAGES = {
    **dict.fromkeys((TURN_DONE, TURN_FAILED, TURN_INTERRUPTED), ENDINGS | {Kind.HOOK.value}),
    QUESTION_ASKED: frozenset({Kind.APPROVAL.value}),
    **dict.fromkeys((QUESTION_ANSWERED, QUESTION_EXPIRED), frozenset({Kind.APPROVAL.value, Kind.TOOL_RESULT.value})),
}
"""The kinds of messages that prove an event, by event; absent if no message does."""


def check_deliveries(tx: Transaction) -> Iterator[Violation]:
    """Return the faults of subscriptions and deliveries."""
    for name, kinds, spec, _ in tx.run("every_subscription"):
        try:
            SubscriptionSpec.decode(spec)
            check_event_kinds(kinds.strip(",").split(","))
        except (BadInput, ValueError, TypeError, KeyError, RecursionError):
            yield Violation(Invariant.DELIVERY, None, f"expected subscription {name!r} to have terms that can be read")
    for name, agent, position, kind, about, tries, due, done, ended, message, pruned in tx.run("every_delivery"):
        named = f"the {kind} at {position} for subscription {name!r}"
        if kind not in EVENT_KINDS or tries < 0:
            yield Violation(Invariant.DELIVERY, agent, f"expected {named} to be of a known kind, with 0 or more tries")
        if due is not None and (done is not None or ended is not None):
            yield Violation(Invariant.DELIVERY, agent, f"expected {named} to wait only before it was received or ended")
        wanted = _MESSAGES.get(kind)
        if wanted is not None and pruned is None and message not in wanted:
            yield Violation(
                Invariant.DELIVERY, agent, f"expected {named} to have its message ({about}); it is {message}"
            )
