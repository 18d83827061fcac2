"""Replies that their service generates in the background and stores (setting ``background``). Pure.

    asked          the request is sent; after a crash now it is sent again, and both requests are paid for
    kept           the first event has come, and a `note` with the name of the reply is committed: the process that
                   resumes the turn reads that reply
    retried        the connection broke for too long: a `retry` with the same name is committed
    over           a later message is committed: the reply itself, or a message after which nobody waits for the reply.
                   Then the service is asked to end the reply. A crash before that leaves an unread reply there

So the kept reply counts as long as the message that names it is the agent's last one, not counting births of children.
The log alone decides that.
"""

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import Departure, GiveUpReply, State, Step
from ikigai_actors.agent.turn.steps import advance, messages_of
from ikigai_actors.frozen import replace
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.kept import RESPONSE, kept_data
from ikigai_actors.records.messages.messages import Kind

_ENDS = (on.ReplyReceived, on.ReplyFailed, on.Exited, on.ReplyKept)
"""The events after which the service works no more on the reply, or keeps it no more."""


def keep_reply(state: State, event: on.ReplyKept, now: int) -> Step:
    """Write a ``note`` with the name under which the service stores the reply in progress."""
    messages = messages_of(state.uuid, state.head, now, ((Kind.NOTE, "", kept_data(event.kept)),))
    return Step(advance(state, messages, kept=event.kept), LogUnit(state.uuid, messages))


def giving_up(before: State, event: on.TurnEvent, step: Step) -> Step:
    """Return the step; if it ends the wait for a stored reply, add the effect by which the service ends that reply.

    The reply is then removed from the state.
    """
    kept, unit = before.kept, step.unit
    if kept is None:
        return step
    if not isinstance(unit, Departure) and step.state.head == before.head:
        return step
    new = unit.messages if isinstance(unit, LogUnit) else ()
    if new and (new[-1].data.get(RESPONSE) == kept.reply.id or all(message.announces_birth for message in new)):
        return step
    state = step.state if step.state.kept is not kept else replace(step.state, kept=None)
    effects = step.effects if isinstance(event, _ENDS) else (*step.effects, GiveUpReply(kept))
    return replace(step, state=state, effects=effects)
