"""What can happen to an agent: commands from outside, and completions of its own effects.

A command carries its caller, which the machine hands back untouched in an `Answer`. A completion names the request that
it answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ikigai_actors.agent.turn.calls import Calls
from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Reply, Spent
from ikigai_actors.records.history import View
from supervisors.signals import Status

Caller = Any
"""Whoever waits for the answer to a command; opaque to the machine (a future, in practice)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Open a turn; answered with its outcome."""

    text: str
    caller: Caller
    mail: int = 0
    """The mail that it came with, from another process; 0 for none."""
    repeats: int = 0
    """Position of the same prompt, when it was the latest and its turn failed without a reply; it is taken back. 0 for
    none. The actor looks it up in the log as it decides.
    """


@dataclass(frozen=True, slots=True)
class Fork:
    """Make a child; answered with its uuid, which the caller drew."""

    child: str
    name: str | None
    prompt: str | None
    settings: Mapping[str, Any]
    restart: str
    caller: Caller
    on_orphan: str | None = None
    """What becomes of the child's children when it dies; None inherits."""


@dataclass(frozen=True, slots=True)
class Clear:
    """Begin anew, with the settings in force; answered with the position of the clear."""

    caller: Caller


@dataclass(frozen=True, slots=True)
class SetMark:
    """Set a mark; answered with its position."""

    label: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class Rewind:
    """Go back to the latest mark, or the latest with a label; answered with the position of the rewind."""

    label: str | None
    caller: Caller


@dataclass(frozen=True, slots=True)
class Undo:
    """Go back to before the latest prompt; answered with the position of the rewind."""

    caller: Caller
    prompt: int = 0
    """Position of that prompt; 0 when there is none. The actor looks it up in the log as it decides."""


@dataclass(frozen=True, slots=True)
class Configure:
    """Change settings; None removes one. Answered with the position of the change."""

    settings: Mapping[str, Any]
    caller: Caller


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with a turn that was cut off, or that ended with an error; answered with whether there was one."""

    caller: Caller


@dataclass(frozen=True, slots=True)
class GetOutcome:
    """Answered with the outcome of the turn in progress, or else of the latest one."""

    caller: Caller


@dataclass(frozen=True, slots=True)
class Decide:
    """Somebody was asked about a call, and has decided; answered with whether it was still to be decided."""

    reply: int
    """Position of the reply that asks for it."""
    call: str
    """The call's id."""
    approved: bool
    reason: str
    """Why not."""
    always: bool
    """From now on no call of this tool asks."""
    caller: Caller


@dataclass(frozen=True, slots=True)
class Interrupt:
    """End the turn in progress now; answered with whether there was one."""

    caller: Caller
    partial: str = ""
    """What the model had said so far; the actor looks it up as it takes the signal."""
    turn: int = 0
    """The turn that is meant, a later one is left alone; 0 means whichever is in progress."""
    spent: Spent | None = None
    """What the model's service has counted so far; the actor looks it up at the same moment."""


@dataclass(frozen=True, slots=True)
class ExitNow:
    """End the agent, between two turns; answered when it is dead, or restarted since it is permanent."""

    result: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """The registry gave the agent another status."""

    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Leave:
    """The agent is terminating, and its turn is over."""


@dataclass(frozen=True, slots=True)
class TurnPoisoned:
    """The turn in progress crashed its agent too often; it is closed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The log was read."""

    head: int
    view: View
    calls: Calls
    """The calls of the last reply of an open turn, as far as they had come."""
    last: Any
    """The outcome of the latest turn that was closed, or None."""
    notice: int = 0
    """What `State.notice` is then."""
    failed: int = 0
    """What `State.failed` is then."""


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """The model answered."""

    request: int
    reply: Reply
    model: str
    """``provider:model`` that made the reply."""


@dataclass(frozen=True, slots=True)
class ReplyFailed:
    """The model could not answer."""

    request: int
    error: ProviderError
    spent: Spent | None = None
    """What the model's service has counted of the reply that did not come."""


@dataclass(frozen=True, slots=True)
class Exited:
    """The agent's own code ends the agent instead of answering."""

    request: int
    result: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool is done, one way or the other."""

    request: int
    """The request whose reply asked for it."""
    call: str
    """The call's id."""
    content: str
    """What the model is told."""
    is_error: bool


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The store refused the unit of a call that the agent performs itself."""

    call: str
    """The call's id."""
    reason: str


@dataclass(frozen=True, slots=True)
class LookAtMail:
    """The agent is idle: it is told of unread mail, unless it was told and has not looked since."""

    earlier: Mapping[str, Any] | None
    """What it was told, as the data of that line."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Nothing happened: is there something to do for the calls of the last reply?"""

    fresh: str
    """A uuid that nobody has, for a child."""


Command = Prompt | Fork | Clear | SetMark | Rewind | Undo | Configure | Resume | GetOutcome | Decide | ExitNow
Completion = Loaded | ReplyReceived | ReplyFailed | Exited | ToolFinished | CallRefused
TurnEvent = Command | Completion | Interrupt | Continue | LookAtMail | StatusChanged | Leave | TurnPoisoned
