"""Recorded steering messages, which a trial gets again at the places where its recorded turns got them.

The recorded messages are in the setting ``effects`` with which the trial is born:

    {"words": [[1, 2, 17, "Use the Paris farm.", {"steer": true}]]}

Message 17 of the record enters the first turn since the birth, after two replies; where the turn would end before that,
it enters after the last reply. ``from`` in the data of its message is that position, so it enters once, whatever
crashes. Children of the trial inherit the setting, but do not get the messages.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import GIVE_RESULT
from ikigai_actors.agent.turn.plan import History
from ikigai_actors.agent.turn.state import State
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import is_whole_reply


class RecordedWord(NamedTuple):
    """A recorded steering message, and the place at which it enters a turn of a trial."""

    turn: int
    """The number of the trial's turn that the message enters, from 1."""
    after: int
    """The number of replies of that turn after which the message enters."""
    position: int
    """The position of the recorded message."""
    text: str
    data: Mapping[str, Any]
    """The data of the message, with the agent that sent it, if an agent did."""

    def again(self) -> tuple[Kind, str, Mapping[str, Any]]:
        """Return the draft of the message for the trial's log."""
        return Kind.STEER, self.text, {**self.data, "from": self.position}


def words_in(settings: Mapping[str, Any]) -> list[RecordedWord]:
    """Return the recorded steering messages in the settings, in order."""
    return [RecordedWord(*word) for word in (settings.get("effects") or {}).get("words") or ()]


def words_due(state: State, event: on.TurnEvent, log: History) -> tuple[on.Prompt, ...]:
    """Return the recorded steering messages that enter with the step for an event, if a request follows it.

    Raises `NotHeld` when the log does not hold all of the agent's own messages.
    """
    if not words_in(state.view.settings):
        return ()
    own = log.messages
    turn, opens = state.turn or state.failed, isinstance(event, on.Prompt)
    number = sum(_opens(message) and (opens or message.id <= turn) for message in own) + opens
    replies = 0 if opens else sum(is_whole_reply(message) and message.id > turn for message in own)
    ends = isinstance(event, on.Continue) and any(call.name == GIVE_RESULT for call in state.calls)
    if isinstance(event, on.ReplyReceived):
        replies, ends = replies + 1, not event.reply.tool_calls
    taken = {message.data.get("from") for message in own if message.kind == Kind.STEER}
    left = [word for word in _born_with(own) if word.turn == number and word.position not in taken]
    last = max(replies, left[0].after) if left and ends else replies
    due = (word.again() for word in left if word.after <= last)
    return tuple(on.Prompt(text, None, data=data) for _, text, data in due)


def _born_with(own: Sequence[Message]) -> list[RecordedWord]:
    """Return the recorded steering messages of an agent: those set at its birth, without inherited ones."""
    return [word for message in own[:2] if message.kind == Kind.CONFIGURE for word in words_in(message.data)]


def _opens(message: Message) -> bool:
    if message.kind == Kind.FORK:
        return message.data.get("go") is True
    return message.kind == Kind.USER and "from" not in message.data
